"""What every published protocol has, once.

participant     one of them as a process; a run of all, in processes or in this one
drive           steps participants, and counts what each spends
frame           how a message is framed; outcome: what a participant ends with
kept            what a run keeps on disk, for one that goes on later
sealing         AES-GCM; paillier, ckks: Paillier's and Cheon's encryption
"""
