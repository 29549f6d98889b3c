import { createHash, randomUUID } from 'node:crypto';
import {
  type BatchBody,
  type BatchResult,
  batchBody,
  batchList,
  batchResult,
  fileBody,
} from '../../shared/api/files.js';
import { orAborted, withResolvers } from '../../shared/async.js';
import { type Clock, delay } from '../../shared/clock.js';
import { noRoomForResult } from '../../shared/files.js';
import type { Client } from '../base/client.js';
import { CommandError, exitCodes, openAiError, ServiceError } from '../base/errors.js';
import { endIn, failureOf, pauseAfter } from './ends.js';
import type { Patience } from './patience.js';
import { type BadLine, type ImageReader, isBad, isFailure, type Prompt, wholeBody } from './prompts.js';
import type { AnswerSink, Sender, Sending } from './run.js';

const endpoint = '/v1/chat/completions';
const pollMs = 1000;
/**
 * Batches grow until one runs for this long, because a service without a durable store loses their answers when it dies.
 */
const longMs = 60_000;
/** Number of waits that make the longest pause, for a temporary failure whose time is unknown. */
const pauses = 6;
/** The next batch waits in the service while one runs, so that no slot is free between them. */
const openAtOnce = 2;
/** Lines of a batch for each slot: few in the first one, so that its answers come soon, then twice as many each time. */
const [fewest, most] = [4, 64];
/** Two batches stay far below the 50,000 lines that a client may have. */
const maxLines = 10_000;
/** Length of the lines after which a batch gets no further line. A service has room for two such batches of a client. */
const fullLength = 16 * 1024 * 1024;

interface SentBatch {
  readonly id: string;
  /** Prompts without a result, by the ID of their line. */
  readonly prompts: Map<string, Prompt | BadLine>;
}

/** Line of a batch that is not created yet. */
interface NewLine {
  readonly id: string;
  readonly prompt: Prompt | BadLine;
  readonly text: string;
}

/** Result of a line whose batch has disappeared. */
const notSent: BatchResult = { custom_id: null, response: null };
const noResult: BatchResult = {
  custom_id: null,
  response: { request_id: '', body: { error: { code: 'internal_error', message: 'the batch has no result for it' } } },
};
/** Code of an error about files that exceed their limit. */
const noRoom = 'payload_too_large';
const endStatuses: readonly BatchBody['status'][] = ['cancelled', 'completed', 'expired', 'failed'];

type BatchClient = Pick<Client, 'getState' | 'getText' | 'upload' | 'postOnce' | 'post' | 'delete'>;

export interface BatchesParts {
  readonly client: BatchClient;
  readonly clock: Clock;
  readonly patience: Patience;
  readonly sink: Pick<AnswerSink, 'sync'>;
  readonly readImages: ImageReader;
  readonly slots: number;
  /** Largest number of prompts in the service at once; null if only its slots decide. */
  readonly atOnce: number | null;
  /** Marks the batches of one output, which the same command finds again; null if the output is stdout. */
  readonly label: string | null;
  /** Whether the failures in batches of an earlier run do not count. */
  readonly retriesFailures: boolean;
  /** Called with the number of prompts whose batch has disappeared, before they are sent again. */
  readonly onLost: (count: number) => void;
}

/** Returns the batches of this client, the newest first. Rejects if the service has none, because it stores no files. */
export async function findBatches(client: BatchClient): Promise<readonly BatchBody[]> {
  const found: BatchBody[] = [];
  for (let after = ''; ; ) {
    const page = await client.getState(`/v1/batches?limit=100${after}`, batchList);
    found.push(...page.data);
    const last = page.data.at(-1);
    if (!page.has_more || last === undefined) return found;
    after = `&after=${last.id}`;
  }
}

/** Sends prompts in batches of the service, which continue without this program. */
export class ServiceBatches implements Sender {
  readonly #parts: BatchesParts;
  /** Batches of an earlier run, the newest first. */
  readonly #earlier: readonly BatchBody[];
  /** Batches whose results are not read yet, in the order in which they run. */
  readonly #open: SentBatch[] = [];
  /** Results without a known prompt, by the ID of their line. */
  readonly #results = new Map<string, BatchResult>();
  /** Prompts that must be sent again. */
  readonly #again: (Prompt | BadLine)[] = [];
  /** Temporary failure of a prompt in the batch that ended last. */
  #refusal: ServiceError | null = null;
  /** Prompt that is not read yet: lines of stdin may arrive slowly. */
  #next: Promise<IteratorResult<Prompt | BadLine>> | null = null;
  #linesPerSlot = fewest;
  /** Largest number of lines in the next batch: fewer after one for whose file the service had no room. */
  #maxLines = maxLines;
  #isLong = false;
  #ready = 0;
  /** Number of times that the current batch was seen waiting for another one. */
  #waits = 0;

  constructor(parts: BatchesParts, batches: readonly BatchBody[]) {
    this.#parts = parts;
    this.#earlier = batches.filter(({ metadata }) => parts.label !== null && metadata?.output === parts.label);
  }

  get ready(): number {
    return this.#ready;
  }

  get heldBecause(): string | null {
    return this.#parts.patience.heldBecause ?? (this.#waits > 1 ? 'another batch of this client runs' : null);
  }

  /** When `stopping` aborts, cancels the batches and places the answers that they have. */
  async sendPrompts(sending: Sending): Promise<void> {
    const { patience } = this.#parts;
    const { stopping, cutting } = sending;
    const earlier = await this.#readEarlier(sending);
    for (;;) {
      while (this.#open.length < (this.#parts.atOnce === null ? openAtOnce : 1) && !stopping.aborted) {
        const lines = await this.#gather(sending);
        if (lines.length === 0) break;
        const batch = await this.#create(lines, sending);
        if (batch !== null) this.#open.push(batch);
        else if (this.#open.length > 0) break;
      }
      const [batch] = this.#open;
      if (batch === undefined) break;
      const ended = await this.#collect(batch, sending);
      await this.#removeFiles([ended], cutting);
      if (ended?.status === 'cancelled' && !stopping.aborted)
        throw new CommandError(exitCodes.failed, 'another program has cancelled the batch');
      if (this.#refusal !== null && !stopping.aborted) await patience.wait(this.#refusal, pauses, cutting);
      this.#refusal = null;
    }
    await this.#removeFiles(earlier, cutting); // their results are written now
  }

  /** Reads the results of the batches whose files an earlier run has not removed. Returns these batches. */
  async #readEarlier(sending: Sending): Promise<(BatchBody | null)[]> {
    const { client, patience } = this.#parts;
    const exists = async (file: string | null) => {
      if (file === null) return false;
      const find = () => orMissing(client.getState(`/v1/files/${file}`, fileBody));
      return (await patience.persist(find, sending.cutting)) !== null;
    };
    // The requests may expire before the results.
    for (const { id, input_file_id: input, output_file_id: output, error_file_id: errors } of this.#earlier)
      if ((await exists(input)) || (await exists(output ?? errors))) this.#open.unshift({ id, prompts: new Map() });
    const ended: (BatchBody | null)[] = [];
    for (const batch of [...this.#open]) ended.push(await this.#collect(batch, sending));
    if (this.#parts.retriesFailures)
      for (const [id, { response }] of this.#results)
        if (openAiError(response?.body) !== null) this.#results.delete(id);
    return ended;
  }

  /** Reads prompts, and makes lines for a batch from them. Returns none if all are sent, or if none has arrived yet. */
  async #gather({ prompts, place, stopping, cutting }: Sending): Promise<NewLine[]> {
    const lines: NewLine[] = [];
    const { slots, atOnce } = this.#parts;
    const count = Math.min(atOnce ?? this.#linesPerSlot * slots, this.#maxLines);
    if (!this.#isLong) this.#linesPerSlot = Math.min(2 * this.#linesPerSlot, most);
    for (let length = 0; lines.length < count && length < fullLength && !stopping.aborted; ) {
      const prompt = this.#again.shift() ?? (await orAborted(this.#nextOf(prompts), cutting));
      if (prompt === 'later' && lines.length + this.#open.length === 0) continue;
      if (prompt === 'later' || prompt === undefined) break;
      const id = customIdOf(prompt);
      const earlier = this.#takeResult(id);
      if (earlier !== null && (await this.#place(prompt, earlier, place))) continue;
      const body = await wholeBody(prompt, this.#parts.readImages);
      if (isFailure(body)) {
        await place(prompt, body);
        continue;
      }
      const text = JSON.stringify({ custom_id: id, method: 'POST', url: endpoint, body });
      lines.push({ id, prompt, text });
      length += text.length;
    }
    return lines;
  }

  /** Returns the next prompt; `later` if it does not arrive soon, undefined at the end. */
  async #nextOf(prompts: Sending['prompts']): Promise<Prompt | BadLine | 'later' | undefined> {
    this.#next ??= prompts.next();
    this.#next.catch(() => {}); // the next call rejects with this error
    const later = withResolvers<'later'>();
    const stopTimer = this.#parts.clock.after(pollMs, () => later.resolve('later'));
    const next = await Promise.race([this.#next, later.promise]).finally(stopTimer);
    if (next === 'later') return next;
    this.#next = null;
    return next.value;
  }

  /** Resolves with null if the service has no room for the file of the batch, or for its results, now. */
  async #create(lines: readonly NewLine[], sending: Sending): Promise<SentBatch | null> {
    const { client, patience, label } = this.#parts;
    const { cutting } = sending;
    const text = lines.map((line) => `${line.text}\n`).join('');
    const file = await patience
      .persist(() => client.upload(text, fileBody, cutting), cutting)
      .catch((error: unknown) => this.#keepWithoutRoom(lines, error, sending));
    if (file === null) return null;
    this.#maxLines = Math.min(2 * this.#maxLines, maxLines);
    const order = { input_file_id: file.id, endpoint, completion_window: '24h', metadata: label && { output: label } };
    const key = randomUUID();
    const create = () => client.postOnce('/v1/batches', order, key, batchBody, cutting);
    const batch = await patience.persist(create, cutting).catch(async (error: unknown) => {
      await client.delete(`/v1/files/${file.id}`, fileBody).catch(() => {}); // otherwise the file expires
      return this.#keepWithoutRoom(lines, error, sending);
    });
    return batch && { id: batch.id, prompts: new Map(lines.map((line) => [line.id, line.prompt])) };
  }

  /**
   * Keeps prompts for smaller batches, after the end of those that are open. A prompt that is too long even for a batch of
   * its own has failed. Rejects with any other error.
   */
  async #keepWithoutRoom(lines: readonly NewLine[], error: unknown, { place, cutting }: Sending): Promise<null> {
    if (!(error instanceof ServiceError) || error.code !== noRoom) throw error;
    const [first] = lines;
    const isLast = first !== undefined && lines.length === 1 && this.#open.length === 0;
    if (isLast && first.text.length > fullLength) await place(first.prompt, failureOf(error));
    else this.#again.push(...lines.map(({ prompt }) => prompt));
    if (isLast && first.text.length <= fullLength) await this.#parts.patience.wait(error, pauses, cutting);
    this.#maxLines = Math.ceil(lines.length / 2);
    return null;
  }

  /** Waits for the end of the first open batch, and places its results. Resolves with null if it does not exist. */
  async #collect(batch: SentBatch, sending: Sending): Promise<BatchBody | null> {
    const beganMs = this.#parts.clock.monotonicMs();
    const ended = await this.#untilEnded(batch.id, sending);
    this.#isLong = this.#parts.clock.monotonicMs() - beganMs > longMs;
    if (ended === null && batch.prompts.size > 0) this.#parts.onLost(batch.prompts.size);
    const unnamed: BatchResult[] = [];
    for (const result of ended === null ? [] : await this.#resultsIn(ended, sending.cutting)) {
      if (result.custom_id === null) unnamed.push(result);
      else this.#results.set(result.custom_id, result);
    }
    for (const [id, prompt] of batch.prompts) {
      const result = this.#takeResult(id) ?? unnamed.shift() ?? (ended === null ? notSent : noResult);
      if (!(await this.#place(prompt, result, sending.place))) this.#again.push(prompt);
    }
    this.#open.shift();
    this.#ready = 0;
    return ended;
  }

  async #untilEnded(id: string, { stopping, cutting }: Sending): Promise<BatchBody | null> {
    const { client, clock, patience } = this.#parts;
    this.#waits = 0;
    for (let isCancelled = false; ; ) {
      if (stopping.aborted && !isCancelled) {
        const cancel = (open: SentBatch) => client.post(`/v1/batches/${open.id}/cancel`, batchBody, cutting);
        for (const open of this.#open.toReversed()) await patience.persist(() => orMissing(cancel(open)), cutting);
        isCancelled = true;
      }
      const get = () => orMissing(client.getState(`/v1/batches/${id}`, batchBody, cutting));
      const batch = await patience.persist(get, cutting);
      if (batch === null || endStatuses.includes(batch.status)) return batch;
      this.#ready = batch.request_counts.completed + batch.request_counts.failed;
      this.#waits = batch.status === 'validating' ? this.#waits + 1 : 0;
      await orAborted(delay(clock, pollMs), cutting);
    }
  }

  async #resultsIn(batch: BatchBody, cutting: AbortSignal): Promise<BatchResult[]> {
    const { client, patience } = this.#parts;
    const results: BatchResult[] = [];
    for (const file of [batch.output_file_id, batch.error_file_id]) {
      if (file === null) continue;
      const get = () => orMissing(client.getText(`/v1/files/${file}/content`, cutting));
      const text = (await patience.persist(get, cutting)) ?? ''; // an earlier run may have removed it
      for (const line of text.split('\n')) results.push(...resultIn(line));
    }
    return results;
  }

  #takeResult(id: string): BatchResult | null {
    const result = this.#results.get(id) ?? null;
    this.#results.delete(id);
    return result;
  }

  /** Resolves with false if the prompt must be sent again. */
  async #place(prompt: Prompt | BadLine, { response }: BatchResult, place: Sending['place']): Promise<boolean> {
    if (response === null) return false;
    const error = openAiError(response.body);
    if (error === null) {
      await place(prompt, endIn(response.body, !isBad(prompt) && 'response_format' in prompt.body));
      return true;
    }
    const failure = new ServiceError({ ...error, request_id: response.request_id });
    const isLost = error.reason === 'host_lost'; // the service has sent the line several times
    const lacksRoom = error.error === noRoom && error.message === noRoomForResult;
    if (!isLost && (lacksRoom || pauseAfter(failure) !== null)) {
      this.#refusal = failure;
      return false;
    }
    await place(prompt, failureOf(failure));
    return true;
  }

  /** Removes the files of batches whose results are written. A batch with its requests counts as not removed yet. */
  async #removeFiles(batches: readonly (BatchBody | null)[], cutting: AbortSignal): Promise<void> {
    const { client, patience, sink } = this.#parts;
    await sink.sync();
    for (const batch of batches)
      for (const file of [batch?.output_file_id, batch?.error_file_id, batch?.input_file_id]) {
        const remove = () => orMissing(client.delete(`/v1/files/${file}`, fileBody));
        if (file != null) await patience.persist(remove, cutting);
      }
  }
}

/** Returns the ID of a prompt's line, which is another one if the prompt changes. */
function customIdOf({ line: _, ...prompt }: Prompt | BadLine): string {
  return createHash('sha256').update(JSON.stringify(prompt)).digest('base64url');
}

/** Parses a line of results; none if it is no result. A prompt without a result gets an error. */
function resultIn(line: string): BatchResult[] {
  try {
    const { data } = batchResult.safeParse(JSON.parse(line));
    return data === undefined ? [] : [data];
  } catch {
    return [];
  }
}

async function orMissing<T>(response: Promise<T>): Promise<T | null> {
  return response.catch((error: unknown) => {
    if (error instanceof ServiceError && error.code === 'not_found') return null;
    throw error;
  });
}
