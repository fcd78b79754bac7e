"""The process: compilation, devices, threads, subprocesses, interrupts and memory."""
