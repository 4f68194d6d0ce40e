"""The private contextual bandit as a service over HTTP, for programs that decide now and are paid later.

    durable      a bandit that is on disk, with all it said, after each batch
    batches      requests that wait are taken together, by one thread
    waiting      parts of contexts until all owners have sent theirs
    answers      what was answered to a request that has a key
    endpoints    what the service is asked; bodies: what each request must look like
    described    the same for people and programs: OpenAPI
    measures     counts and times, for whoever watches

Endpoints know no HTTP, and whoever listens, `mpc.net.web`, no bandit.
"""
