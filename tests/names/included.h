/* SPDX-License-Identifier: Apache-2.0 */
mark("included"); /* @included.0 second_unit */
