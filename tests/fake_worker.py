"""A worker process that knows the fake task."""

import fake_task  # noqa: F401
from dotphase.study.worker import main

if __name__ == "__main__":
    main()
