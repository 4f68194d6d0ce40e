"""Transports: the only place that knows sockets and torch.distributed.

transport        what a session asks of one; memory, tcp, gloo are transports, channel is a link of two
joining          how nodes meet: calls, greetings, the proofs they exchange
keys             a key for each two nodes, and the proof that one has it
frames           what travels: headers, and the words of who leaves
"""
