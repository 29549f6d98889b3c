import { until } from '../basics/until.js';
import type { Service } from '../service/service.js';

interface Runtime {
  readonly active_requests: number;
  readonly queued_requests: number;
  readonly rejected_total: number;
  readonly queue_timeouts_total: number;
}

/** Returns the job counts of GET /health. */
export async function runtimeOf(service: Service): Promise<Runtime> {
  const { body } = await service.get('/health');
  return (body.observability as { model_runtime: Runtime }).model_runtime;
}

/** Resolves when this many jobs run and wait. */
export function untilJobs(service: Service, active: number, queued: number, withinMs?: number): Promise<boolean> {
  const counted = async () => {
    const runtime = await runtimeOf(service).catch(() => null); // the asked worker may be dying
    return runtime?.active_requests === active && runtime.queued_requests === queued;
  };
  return until(counted, `${active} running and ${queued} queued jobs`, withinMs);
}

/**
 * Ends all jobs, and deletes background jobs and those conversations that `isOver`. The second try of a test that shares
 * its service must not find what the first has left.
 */
export async function clearAway(service: Service, isOver: (title: string) => boolean = () => true): Promise<void> {
  await until(async () => {
    const jobs = (await service.get('/jobs')).body.jobs as readonly { readonly job_id: string }[];
    await Promise.all(jobs.map(({ job_id }) => service.delete(`/jobs/${job_id}`)));
    return jobs.length === 0;
  }, 'all jobs to be deleted');
  const { body } = await service.get('/chat?limit=100');
  const conversations = body.conversations as readonly { readonly conversation_id: string; readonly title: string }[];
  const over = conversations.filter(({ title }) => isOver(title));
  await Promise.all(over.map(({ conversation_id }) => service.delete(`/chat/${conversation_id}`)));
}

/** Five times the documented maximum from a job's end to the end of its last process, for a busy machine. */
const treeGoneMs = 5000;

export function untilTreeGone(service: Service, withinMs = treeGoneMs): Promise<boolean> {
  return until(async () => (await service.jobProcesses()).length === 0, 'the process tree to be gone', withinMs);
}

/** Expects that no process is left and that all slots are free. */
export async function recovers(service: Service): Promise<void> {
  await untilTreeGone(service);
  await untilJobs(service, 0, 0);
}
