import type { JobEnd, JobEvent } from '../../shared/job.js';
import type { AnswerText } from './answer-text.js';
import type { JobReport } from './job-report.js';

/** Reports each event. Takes the last step in advance: a client that leaves after the job's end has not cancelled it. */
export async function* reported(events: AsyncGenerator<JobEvent>, report: JobReport): AsyncGenerator<JobEvent> {
  let hasEnded = false;
  try {
    for (let step = await events.next(); step.done !== true; step = await events.next()) {
      report.follow(step.value);
      hasEnded = step.value.type === 'job-end';
      if (hasEnded) events.next().catch(() => {});
      yield step.value;
    }
  } finally {
    if (!hasEnded) await events.return(undefined);
  }
}

/** Holds the text of each delta, once it was sent. */
export async function* gathered(events: AsyncIterable<JobEvent>, text: AnswerText): AsyncGenerator<JobEvent> {
  for await (const event of events) {
    if (event.type === 'job-end' && event.outcome === 'ok' && event.text !== null) await text.replace(event.text);
    yield event;
    if (event.type === 'text-delta') await text.add(event.text);
  }
}

/**
 * Sends the events of a job as they come, to the client whose request it is or to a reader of a background job. Returns
 * the end; null where there is none.
 */
export async function follow(
  events: AsyncIterable<JobEvent>,
  take: (event: JobEvent) => Promise<void>,
): Promise<JobEnd | null> {
  for await (const event of events) {
    if (event.type === 'job-end') return event;
    await take(event);
  }
  return null;
}
