import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { setNewest } from '../../shared/bounded-map.js';
import { type ClientText, holderOf } from '../../shared/client.js';
import type { Clock } from '../../shared/clock.js';
import { RelayError, retryAfter } from '../../shared/errors.js';
import { LimitedThread, TooManyTasks } from '../../shared/threads/limited-thread.js';
import type { SchemaFinding, SchemaTask } from './schema-thread.js';

const idleMs = 600_000;
/** Time limit of a check. A schema of 64 KB takes about 50 ms; a hostile pattern would take years. */
const limitMs = 2000;
/** Number of valid tool schemas that are remembered. */
const maxGood = 4096;
const firstTask: SchemaTask = { schema: '{}', text: null };

/**
 * Checks schemas, and values against them, outside of the event loop of the primary. Key holders, users and addresses
 * take turns, so that no client waits for all slow schemas of another. Values have separate turns, because running jobs
 * wait for them.
 */
export class SchemaChecker {
  readonly #thread: LimitedThread<SchemaTask, SchemaFinding>;
  /** Digests of valid schemas, least recently used first. */
  readonly #good = new Map<string, true>();

  /** Calls `onError` if the thread could not start, or broke. */
  constructor(clock: Clock, onError: (error: unknown) => void) {
    const settings = {
      file: join(__dirname, 'schema-thread.js'),
      name: 'check',
      firstTask,
      limitMs,
      patienceMs: null,
      idleMs,
    };
    this.#thread = new LimitedThread(settings, clock, onError);
  }

  /**
   * Returns the fault of a schema (JSON); null if the schema is usable. Rejects with `concurrency_limited` if too many
   * checks wait.
   */
  async faultOf(schema: string, client: ClientText): Promise<string | null> {
    const finding = await this.#check({ schema, text: null }, 'bad-schema', `schemas of ${holderOf(client)}`);
    return finding.kind === 'fits' ? null : finding.fault;
  }

  /**
   * Returns the first faulty schema and its fault, see `faultOf`. Valid schemas are remembered, because clients send
   * the same tools with each request.
   */
  async firstFault(schemas: readonly string[], client: ClientText): Promise<{ index: number; fault: string } | null> {
    for (const [index, schema] of schemas.entries()) {
      const digest = createHash('sha256').update(schema).digest('base64');
      const fault = this.#good.has(digest) ? null : await this.faultOf(schema, client);
      if (fault !== null) return { index, fault };
      setNewest(this.#good, digest, true, maxGood);
    }
    return null;
  }

  /** Parses the answer of a model as JSON, and checks it against the schema. */
  readValue(schema: string, text: string, client: ClientText): Promise<SchemaFinding> {
    return this.#check({ schema, text }, 'bad-value', `values of ${holderOf(client)}`);
  }

  async #check(task: SchemaTask, kind: 'bad-schema' | 'bad-value', line: string): Promise<SchemaFinding> {
    try {
      return await this.#thread.runTask(task, { line });
    } catch (error) {
      if (error instanceof TooManyTasks) throw tooManySchemas();
      return { kind, fault: 'it could not be checked in time' };
    }
  }

  closeThread(): Promise<void> {
    return this.#thread.closeThread();
  }
}

function tooManySchemas(): RelayError {
  return new RelayError('concurrency_limited', 'too many schemas wait to be checked', {
    retryAfterSeconds: retryAfter('schemas'),
  });
}
