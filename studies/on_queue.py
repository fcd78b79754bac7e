"""Run a study on a cluster with a job queue: each job is one Dask worker.

    python studies/on_queue.py studies/branches.toml --out branches --jobs 10
    python studies/on_queue.py studies/branches.toml --out branches --system local --jobs 2

The journal stays with this process; it may run on the login node, or as a small job of its
own. If it or any job is killed, the same command goes on where it stopped. `--system local`
starts the jobs on this machine, to try the set-up where there is no queue.

Jobs and scheduler talk to nobody without keys that are made for this run (TLS). Those of the jobs
lie in the user's home, in files that nobody else can read, until the run ends.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import dask
import dask_jobqueue
from dask_jobqueue.local import LocalCluster
from distributed import Security

import dotphase as dp

SYSTEMS = {
    "slurm": dask_jobqueue.SLURMCluster,
    "pbs": dask_jobqueue.PBSCluster,
    "lsf": dask_jobqueue.LSFCluster,
    "sge": dask_jobqueue.SGECluster,
    "local": LocalCluster,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("spec")
    parser.add_argument("--out", required=True)
    parser.add_argument("--system", choices=SYSTEMS, default="slurm")
    parser.add_argument("--jobs", type=int, default=4, help="jobs to keep in the queue")
    parser.add_argument("--memory", default="4GB", help="of each job; d = 10,000 needs 12GB")
    parser.add_argument("--walltime", default="04:00:00", help="of each job")
    parser.add_argument("--queue", default=None, help="queue or partition")
    parser.add_argument("--logs", default=None, help="folder for what the jobs print")
    asked = parser.parse_args()
    # One thread for each worker; and the jobs find dotphase also when it is run from source.
    needed = {"NPROC": "1", "PYTHONPATH": str(Path(dp.__file__).parents[1])}
    if asked.system == "local":
        os.environ.update(needed)
        place = {}
    else:
        exports = [f"export {name}={value}" for name, value in needed.items()]
        place = {"walltime": asked.walltime, "queue": asked.queue, "job_script_prologue": exports}
    keys = Security.temporary()
    own = {
        "distributed.comm.tls.ca-file": keys.tls_ca_file,
        "distributed.comm.tls.client.cert": keys.tls_client_cert,
        "distributed.comm.tls.client.key": keys.tls_client_key,
    }
    with (
        SYSTEMS[asked.system](
            cores=1,
            processes=1,
            memory=asked.memory,
            log_directory=asked.logs,
            scheduler_options={"dashboard_address": "127.0.0.1:0"},
            security=keys,
            protocol="tls://",
            shared_temp_directory=str(Path.home()),
            **place,
        ) as cluster,
        dask.config.set(own),
    ):
        # Jobs that end, for want of time or otherwise, are replaced.
        cluster.adapt(minimum_jobs=asked.jobs, maximum_jobs=asked.jobs)
        try:
            dataset = dp.run_study(
                asked.spec, asked.out, engine="dask", scheduler=cluster.scheduler_address
            )
        except dp.InvalidInput as error:
            print(error, file=sys.stderr)
            return 2
    print(dataset)
    return 0


if __name__ == "__main__":
    sys.exit(main())
