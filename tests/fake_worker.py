"""A worker process that knows the fake task."""

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    import fake_task  # noqa: F401
    from dotphase.runtime.processes import main

    main()
