"""HELBA as published, on CKKS ciphertexts: keys with the users, ciphertexts with the server."""
