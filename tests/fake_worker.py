"""A worker process that knows the fake engine."""

import fake_engine  # noqa: F401
from dotphase.sweep.worker import main

if __name__ == "__main__":
    main()
