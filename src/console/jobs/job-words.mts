import type { JobBody, ListedJob } from '../../shared/api/jobs.js';
import { durationText } from '../format.mjs';
import type { Tone } from '../ui/status-dot.mjs';

/** Where a background job is in the API. */
export function pathOfJob(id: string): string {
  return `/jobs/${encodeURIComponent(id)}`;
}

const tones: Readonly<Record<ListedJob['status'], Tone>> = {
  queued: 'idle',
  running: 'warn',
  succeeded: 'good',
  failed: 'bad',
  cancelled: 'idle',
};

export function toneOf({ status }: Pick<ListedJob, 'status'>): Tone {
  return tones[status];
}

export function statusText({ status, position }: Pick<ListedJob, 'status' | 'position'>): string {
  return position === null ? status : `${status}, place ${position}`;
}

/** `waited 2 s, ran 40 s`: as far as it has come. */
export function timesText({ created_at: created, started_at: started, ended_at: ended }: ListedJob): string {
  const between = (from: string, to: string) => durationText(Math.max(0, Date.parse(to) - Date.parse(from)));
  const end = started ?? ended;
  if (end === null) return '';
  const waited = `waited ${between(created, end)}`;
  return started === null || ended === null ? waited : `${waited}, ran ${between(started, ended)}`;
}

/** What the job has answered: a text, or a value. */
export interface JobAnswerShown {
  readonly text: string;
  readonly value: unknown;
  readonly conversationId: string | null;
}

interface WrittenItem {
  readonly arguments?: string;
  readonly content?: readonly { readonly text?: string }[];
}

/** In whichever form the answer is told: as the endpoint tells it that took the request. */
export function answerOf(result: NonNullable<JobBody['result']>): JobAnswerShown {
  const { response, structured, conversation_id: id, output } = result as Readonly<Record<string, unknown>>;
  const items = (output ?? []) as readonly WrittenItem[];
  const written = items.map((item) => item.arguments ?? (item.content ?? []).map(({ text }) => text ?? '').join(''));
  const text = typeof response === 'string' ? response : written.join('');
  return { text, value: structured, conversationId: typeof id === 'string' ? id : null };
}
