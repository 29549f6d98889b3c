import type { Request } from 'express';
import type { AcceptedBody } from '../../shared/api/jobs.js';
import type { AcceptedView, JobForm } from '../../shared/background.js';
import { timestamp } from '../../shared/clock.js';
import type { Primary, Reply } from '../http/exchange.js';
import { sendRecorded } from '../http/send-json.js';
import { onlyOnce } from '../idempotency/only-once.js';
import { type JobOrder, requestOf } from '../jobs/job-order.js';

/** Whether the caller would rather not wait for the answer (RFC 7240). There, an empty value is none. */
export function prefersAsync(req: Pick<Request, 'get'>): boolean {
  const strings = /"(?:\\.?|[^"\\])*(?:"|$)/g;
  const unquoted = (req.get('prefer') ?? '').replace(strings, (text) => (text === '""' ? '' : 'string'));
  return unquoted.split(',').some((preference) => /^\s*respond-async\s*(=\s*)?(;|$)/i.test(preference));
}

/** Leaves the job to the primary, and tells the caller where to ask for it. `more`: what a door tells, in its own form. */
export async function acceptJob(
  primary: Primary,
  res: Reply,
  order: JobOrder,
  form: Omit<JobForm, 'isStructured'>,
  more: (accepted: AcceptedView) => object = () => ({}),
): Promise<void> {
  const job = await requestOf({ ...order, stream: true }, primary, res);
  await onlyOnce(primary, res, 'background', async () => {
    const accepted = await primary.call('accept', { job, form: { ...form, isStructured: job.schema !== null } });
    const body: AcceptedBody = {
      job_id: accepted.id,
      status: 'queued',
      created_at: timestamp(accepted.createdAt),
      durable: accepted.isDurable,
      request_id: res.locals.requestId,
    };
    res.set({ 'Preference-Applied': 'respond-async', Location: `/jobs/${accepted.id}` });
    await sendRecorded(res, JSON.stringify({ ...body, ...more(accepted) }), 202);
  });
}
