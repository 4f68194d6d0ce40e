"""HELBA as published, on CKKS ciphertexts: keys with the users, ciphertexts with the server.

server      the steps of the protocol; user: what users answer, and the owner of the key
refresh     masks of slots, and what a refresh under them tells
layout      which slot holds what
settings    constants, divisors, how often each polynomial is iterated
cast        who is given what; messages: what they send; outcome: what each ends with
run         a whole run, beside the policy in the clear
"""
