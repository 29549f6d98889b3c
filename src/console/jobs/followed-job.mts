import type { DeletedJob, JobBody, ListedJob } from '../../shared/api/jobs.js';
import type { Api } from '../base/api.mjs';
import { ApiError, asError, isAbort, ServerGone } from '../base/failures.mjs';
import { durationText } from '../base/format.mjs';
import { Observable } from '../base/observable.mjs';
import type { PageClock } from '../base/page-clock.mjs';
import type { Tone } from '../ui/notices.mjs';

/** Returns the path of a job in the API. */
function pathOfJob(id: string): string {
  return `/jobs/${encodeURIComponent(id)}`;
}

/**
 * Cancels a job that waits or runs. A background job that has ended is unchanged. After its end, a job of an open
 * request is unknown: its 404 is ignored.
 */
export async function cancelJob(api: Pick<Api, 'json'>, id: string): Promise<void> {
  await api.json<DeletedJob>(`${pathOfJob(id)}?keep_ended=true`, { method: 'DELETE' }).catch((error: unknown) => {
    if (!(error instanceof ApiError && error.status === 404)) throw error;
  });
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

/**
 * Returns the title of a job. Without one, returns its ID: the prompt is only an image, or an older version accepted
 * the job.
 */
export function titleOf({ title, job_id: id }: Pick<ListedJob, 'title' | 'job_id'>): string {
  return title?.trim() || `Job ${id}`;
}

export function statusText({ status, position }: Pick<ListedJob, 'status' | 'position'>): string {
  return position === null ? status : `${status}, place ${position}`;
}

/** Formats the times of a job: `waited 2 s, ran 40 s`; empty until it starts, without the second part until it ends. */
export function timesText({ created_at: created, started_at: started, ended_at: ended }: ListedJob): string {
  const between = (from: string, to: string) => durationText(Math.max(0, Date.parse(to) - Date.parse(from)));
  const end = started ?? ended;
  if (end === null) return '';
  const waited = `waited ${between(created, end)}`;
  return started === null || ended === null ? waited : `${waited}, ran ${between(started, ended)}`;
}

/** Answer of a job: a text or a value. */
interface JobAnswerShown {
  readonly text: string;
  readonly thoughts: string;
  readonly value: unknown;
  readonly conversationId: string | null;
}

interface WrittenItem {
  readonly summary?: readonly { readonly text?: string }[];
  readonly arguments?: string;
  readonly content?: readonly { readonly text?: string }[];
}

/** Reads the answer from a result. Its format depends on the endpoint that received the request. */
export function answerOf(result: NonNullable<JobBody['result']>): JobAnswerShown {
  const { response, thoughts, structured, conversation_id: id, output } = result as Readonly<Record<string, unknown>>;
  const items = (output ?? []) as readonly WrittenItem[];
  const written = items.map((item) => item.arguments ?? (item.content ?? []).map(({ text }) => text ?? '').join(''));
  const text = typeof response === 'string' ? response : written.join('');
  const summaries = items.flatMap(({ summary = [] }) => summary.map(({ text: part }) => part ?? ''));
  const shown = typeof thoughts === 'string' ? thoughts : summaries.join('\n\n');
  return { text, thoughts: shown, value: structured, conversationId: typeof id === 'string' ? id : null };
}

interface ShownJob {
  /** The job; null before it is read. */
  readonly job: JobBody | null;
  /** Text of the answer so far, while the job runs. */
  readonly text: string;
  readonly failure: Error | null;
}

const againMs = 1000;

/** Follows one background job until the user leaves it. */
export class FollowedJob {
  readonly view = new Observable<ShownJob>({ job: null, text: '', failure: null });
  readonly #api: Pick<Api, 'json' | 'events'>;
  readonly #clock: PageClock;
  readonly #path: string;
  readonly #leaving = new AbortController();

  constructor(api: Pick<Api, 'json' | 'events'>, clock: PageClock, id: string) {
    this.#api = api;
    this.#clock = clock;
    this.#path = pathOfJob(id);
  }

  /** Reads the events of the job until it ends. If the stream breaks, opens a new one, which repeats every event. */
  async follow(): Promise<void> {
    const { signal } = this.#leaving;
    try {
      for (let isOpen = await this.#read(); isOpen; isOpen = await this.#read()) {
        await this.#readEvents();
        await this.#pause();
        signal.throwIfAborted();
      }
    } catch (error) {
      if (!isAbort(error)) this.#set({ failure: asError(error) });
    }
  }

  leave(): void {
    this.#leaving.abort();
  }

  /** Cancels a job that is open, or removes one that has ended. Resolves with whether it was removed. */
  async remove(): Promise<boolean> {
    const { deleted } = await this.#api.json<DeletedJob>(this.#path, { method: 'DELETE' });
    return deleted;
  }

  /** Reads the job. Resolves with whether it is still open. */
  async #read(): Promise<boolean> {
    const job = await this.#api.json<JobBody>(this.#path, { signal: this.#leaving.signal });
    this.#set({ job, failure: null });
    return job.ended_at === null;
  }

  async #readEvents(): Promise<void> {
    let text = '';
    try {
      for await (const { event, data } of this.#api.events(`${this.#path}/events`, { signal: this.#leaving.signal })) {
        const { job } = this.view.value;
        const content = JSON.parse(data) as { readonly text?: string; readonly position?: number };
        if (event === 'queued' && job) this.#set({ job: { ...job, position: content.position ?? null } });
        if (event === 'started' && job) this.#set({ job: { ...job, status: 'running', position: null } });
        if (event !== 'delta') continue;
        text += content.text ?? '';
        this.#set({ text });
      }
    } catch (error) {
      if (!(error instanceof ServerGone)) throw error;
    }
  }

  /** Delays the next stream. Without a pause, a stream that ends at once would be opened again in a tight loop. */
  #pause(): Promise<void> {
    const { job } = this.view.value;
    return new Promise((resolve) => void this.#clock.after(job?.ended_at === null ? againMs / 4 : againMs, resolve));
  }

  #set(change: Partial<ShownJob>): void {
    if (!this.#leaving.signal.aborted) this.view.set({ ...this.view.value, ...change });
  }
}
