"""Run a study on a cluster with a job queue: each job is one Dask worker.

    python studies/on_queue.py studies/branches.toml --out branches --jobs 10
    python studies/on_queue.py studies/branches.toml --out branches --system local --jobs 2

This process writes the journal; it can run on the login node or in a small separate job. If it or
any job is killed, the same command resumes the study. `--system local` starts the jobs on this
machine, to test the setup without a queue.

Jobs and scheduler accept only connections with keys that are created for this run (TLS). Until the
run ends, the keys of the jobs are in files in the user's home that only the user can read.
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
    parser.add_argument("--logs", default=None, help="folder for the output of the jobs")
    options = parser.parse_args()
    # One thread per worker; the path lets jobs import dotphase from its source.
    environment = {"NPROC": "1", "PYTHONPATH": str(Path(dp.__file__).parents[1])}
    if options.system == "local":
        os.environ.update(environment)
        job_options = {}
    else:
        exports = [f"export {name}={value}" for name, value in environment.items()]
        job_options = {"walltime": options.walltime, "queue": options.queue}
        job_options["job_script_prologue"] = exports
    keys = Security.temporary()
    dask_settings = {
        "distributed.comm.tls.ca-file": keys.tls_ca_file,
        "distributed.comm.tls.client.cert": keys.tls_client_cert,
        "distributed.comm.tls.client.key": keys.tls_client_key,
    }
    with (
        SYSTEMS[options.system](
            cores=1,
            processes=1,
            memory=options.memory,
            log_directory=options.logs,
            scheduler_options={"dashboard_address": "127.0.0.1:0"},
            security=keys,
            protocol="tls://",
            shared_temp_directory=str(Path.home()),
            **job_options,
        ) as cluster,
        dask.config.set(dask_settings),
    ):
        # Jobs that end, for example at their time limit, are replaced.
        cluster.adapt(minimum_jobs=options.jobs, maximum_jobs=options.jobs)
        try:
            dataset = dp.run_study(
                options.spec, options.out, engine="dask", scheduler=cluster.scheduler_address
            )
        except dp.InvalidInput as error:
            print(error, file=sys.stderr)
            return 2
    print(dataset)
    return 0


if __name__ == "__main__":
    sys.exit(main())
