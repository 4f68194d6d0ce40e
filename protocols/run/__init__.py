"""What every program has, once: plan, simulate, launch, checkpoints, stop and resume, results, options."""
