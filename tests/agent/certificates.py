# SPDX-License-Identifier: Apache-2.0
"""Certificates for tests, made by openssl into the working folder: NAME.pem and NAME.key."""
from command import run


def make_ca(name):
    run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "3", "-subj",
        f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.pem")


def make(name, ca, names):
    """`names` is what the certificate is for: DNS:x,IP:y."""
    run("openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}", "-keyout",
        f"{name}.key", "-out", f"{name}.csr")
    with open(f"{name}.ext", "w", encoding="ascii") as file:
        file.write(f"subjectAltName={names}\n")
    run("openssl", "x509", "-req", "-in", f"{name}.csr", "-CA", f"{ca}.pem", "-CAkey", f"{ca}.key", "-CAcreateserial", "-days", "3",
        "-extfile", f"{name}.ext", "-out", f"{name}.pem")
