"""Transports: the only place that knows sockets and torch.distributed.

transport        what a session asks of one; memory, tcp, tls, gloo are transports, channel is a link of two
mesh             messages over sockets and their deadlines; party_mesh: rounds; client_mesh: a client's end;
                 tcp: on one machine; tls: between machines
gathering        how all nodes find together, whatever way they prove who they are
joining          how those of one machine do: calls, greetings, the proofs they exchange
keys             a key for each two nodes of one machine, and the proof that one has it
certificates     a node's key and certificate between machines; member: all that a node knows of the others
door             how those of different machines do: who is let in, who is turned away; hello: what two nodes say first;
                 caller: one who calls, and why not; tuning: how TCP is set for such a link
links            one connection after another to the same peer, as one; remaking: who makes the next
probe            what a link can do, measured
insecure         links that hide nothing, to measure what TLS costs
frames           what travels: headers, and the words of who leaves
handing          messages and descriptors between a launcher and those it starts
"""
