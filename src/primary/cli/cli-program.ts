import type { ModelEntry } from '../../shared/api/models.js';
import { RelayError } from '../../shared/errors.js';
import type { Verdict } from '../readiness/readiness.js';
import type { Adapter, Consult, Consultation, Dialect } from './adapter.js';
import { findProgram } from './find-program.js';

export interface KnownProgram {
  readonly path: string;
  /** Arguments that stand before all others. */
  readonly leading: readonly string[];
  readonly dialect: Dialect;
  /** Changes with the file. */
  readonly fingerprint: string;
}

interface Inspection {
  readonly fingerprint: string;
  readonly dialect: Promise<Dialect>;
}

export type ConsultProgram = (path: string, args: readonly string[], input?: string) => Promise<Consultation>;

/** Owns what is known of the model CLI's program file: where it is, and what it can do, once per file. */
export class CliProgram {
  readonly #adapter: Adapter;
  readonly #searchPath: string;
  readonly #consult: ConsultProgram;
  #inspection: Inspection | null = null;
  #version: string | null = null;

  constructor(adapter: Adapter, searchPath: string, consult: ConsultProgram) {
    this.#adapter = adapter;
    this.#searchPath = searchPath;
    this.#consult = consult;
  }

  /** The version of the program last found; null before that, and for a program that names none. */
  get version(): string | null {
    return this.#version;
  }

  /** Looks again at every call, because a CLI may be installed, updated or removed at any time. Throws `spawn_error`. */
  async find(): Promise<KnownProgram> {
    const [name, ...leading] = this.#adapter.command;
    const found = await findProgram(name, this.#searchPath, this.#inspection?.fingerprint);
    if (found.kind !== 'found') throw cannotStart(name, found.kind);
    if (this.#inspection?.fingerprint !== found.fingerprint) this.#inspect(found.path, found.fingerprint);
    const dialect = await (this.#inspection as Inspection).dialect;
    this.#version = dialect.version;
    return { path: found.path, leading, dialect, fingerprint: found.fingerprint };
  }

  /** Whether jobs can be run: the program is there, and says that it can. Throws `spawn_error` where it is not. */
  async check(): Promise<Verdict> {
    const { path, dialect } = await this.find();
    return { version: dialect.version, error: await dialect.check(this.#consultAt(path)) };
  }

  /** The models it can use; null where it can't tell. Throws `spawn_error`. */
  async listModels(): Promise<readonly ModelEntry[] | null> {
    const { path, dialect } = await this.find();
    return dialect.listModels(this.#consultAt(path));
  }

  #consultAt(path: string): Consult {
    const [, ...leading] = this.#adapter.command;
    return (args, input) => this.#consult(path, [...leading, ...args], input);
  }

  #inspect(path: string, fingerprint: string): void {
    const inspection = { fingerprint, dialect: this.#adapter.inspect(this.#consultAt(path)) };
    this.#inspection = inspection;
    inspection.dialect.catch(() => {
      // Not remembered: what failed once may work at the next job.
      if (this.#inspection === inspection) this.#inspection = null;
    });
  }
}

function cannotStart(name: string, kind: 'missing' | 'not-executable'): RelayError {
  const program = name.split('/').at(-1);
  const why = kind === 'missing' ? 'is not installed on this host' : 'may not be executed by the service';
  return new RelayError('spawn_error', `the model CLI ${program} ${why}`);
}
