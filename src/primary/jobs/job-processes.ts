import { type ClientKind, readClientId } from '../../shared/client.js';
import { forgetConversation, type ModelCli } from '../cli/model-cli.js';
import type { ConversationState } from '../cli/process/cli-process.js';
import type { Tenant } from '../cli/process/renewal.js';
import type { Job } from './job.js';
import type { JobCli } from './job-cli.js';

/** Owns the CLI process of one job. A job has at most one process at a time. */
export class JobProcesses {
  readonly #job: Job;
  readonly #clis: readonly ModelCli[];
  #current: JobCli | null = null;

  /** `clis`: all model CLIs of the service. */
  constructor(job: Job, clis: readonly ModelCli[]) {
    this.#job = job;
    this.#clis = clis;
  }

  /** The process of the current turn. */
  get current(): JobCli {
    if (this.#current === null) throw new Error('the job has no process');
    return this.#current;
  }

  /** Acquires the process for the job's turn. */
  acquireProcess(): Promise<void> {
    const { continues, turn, request } = this.#job;
    const history = () => turn?.history ?? request.history;
    return this.#acquire(continues?.beginnings === undefined ? continues : { ...continues, history });
  }

  /** Releases the process and acquires a new one for another turn. */
  async acquireAnother(): Promise<void> {
    await this.release(null);
    await this.#acquire(null);
  }

  /**
   * Releases the process like `CliLease.release`. If the conversation continues here, its processes at other CLIs are
   * dropped.
   */
  async release(conversation: ConversationState | null): Promise<void> {
    const cli = this.#current;
    this.#current = null;
    if (cli !== null && conversation !== null) forgetConversation(this.#clis, conversation.id, this.#job.route.cli);
    await cli?.release(conversation);
  }

  async #acquire(conversation: ConversationState | null): Promise<void> {
    const { route, launch, signal, trace } = this.#job;
    const acquired = route.cli.acquire(launch, conversation, signal, tenantOf(this.#job));
    trace?.acquiring?.(acquired);
    this.#current = await acquired;
  }
}

/**
 * Returns the client for which the process of a job may be renewed; null for a client that is known by its address
 * alone, behind which there may be several people, and for a job that searches the web.
 */
export function tenantOf({
  request,
  launch,
  isContinuable,
}: Pick<Job, 'request' | 'launch' | 'isContinuable'>): Tenant | null {
  const { client, offer = null, search } = request;
  if (unknownPeople.has(readClientId(client).kind) || search !== undefined) return null;
  const { system, schema } = launch;
  return { client, system, schema, offer, isQuestion: !isContinuable };
}

/** Kinds of clients behind which there may be several people. */
const unknownPeople: ReadonlySet<ClientKind> = new Set(['address', 'other']);
