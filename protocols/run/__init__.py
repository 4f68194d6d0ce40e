"""What every program has, once.  A system says what it is as a `program.Program`; the rest is here.

program          what a system gives: roles, what each alone has, its player, its clients, its result; how many
                 steps of material its decisions draw; and the `Desk`: all that a client can do beside its messages
options          the options that all programs have, and what a command does with them
simulate         a run in one process
launch           a run in processes; role_process is such a process, torchrun its ranks
dealer_process   the dealer's: a run that goes on has the same coins, for it deals them from the same key
member_process   a role on a machine of its own, by its file: config; line_desk is a client's there;
                 diagnosis measures its links
rehearsal        what one decision draws, found by playing it with nobody's inputs; plan_command writes that down
checkpoint       what a role goes on from
folder           of a run: locked, begun, gone on from, finished; its keys, such as that of the coins
tagged_file      a file that is whole, on the disk, and authenticated in its place
notes            what a client learned, decision by decision, and which were made again
stopping         Ctrl-C once and twice
desk             the two desks on one machine, in this process and by files
report           documents, texts and files; plots and picture draw; progress is said in between
terminal         lines that fit, colour, times as people say them
seeded_dealer    a dealer for simulations that can be repeated
exits            exit codes, and the one line of an error; parser: argparse, whose mistakes are such lines
"""
