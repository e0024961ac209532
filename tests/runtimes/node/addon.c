// SPDX-License-Identifier: Apache-2.0
/* An addon that calls back what it is called with. Node-API, as far as that goes: it is the same in
 * all versions. */
#include <stddef.h>

typedef struct napi_env__ *napi_env;
typedef struct napi_value__ *napi_value;
typedef struct napi_callback_info__ *napi_callback_info;
typedef napi_value (*napi_callback)(napi_env env, napi_callback_info info);

int napi_get_cb_info(napi_env env, napi_callback_info info, size_t *nr, napi_value *values,
		     napi_value *self, void **data);
int napi_get_undefined(napi_env env, napi_value *ret);
int napi_call_function(napi_env env, napi_value self, napi_value function, size_t nr,
		       const napi_value *values, napi_value *ret);
int napi_create_function(napi_env env, const char *name, size_t len, napi_callback function,
			 void *data, napi_value *ret);
int napi_set_named_property(napi_env env, napi_value object, const char *name, napi_value value);
napi_value napi_register_module_v1(napi_env env, napi_value exports);

__attribute__((noinline)) napi_value addon_call_back(napi_env env, napi_callback_info info)
{
	napi_value function, self, result = NULL;
	size_t nr = 1;

	if (napi_get_cb_info(env, info, &nr, &function, NULL, NULL) ||
	    napi_get_undefined(env, &self))
		return NULL;
	napi_call_function(env, self, function, 0, NULL, &result);
	return result;
}

napi_value napi_register_module_v1(napi_env env, napi_value exports)
{
	napi_value function;

	if (!napi_create_function(env, "callBack", 8, addon_call_back, NULL, &function))
		napi_set_named_property(env, exports, "callBack", function);
	return exports;
}
