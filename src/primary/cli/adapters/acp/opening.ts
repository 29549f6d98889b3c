import type { StdinReply, Turn, TurnFailed } from '../../contract/adapter.js';
import { printable, turnFailed } from '../common/failure.js';
import { type RpcAnswer, type RpcError, rpcRequest } from '../common/json-rpc.js';
import { type AcpRequest, type ModeRequest, modeRequest } from './choices.js';
import { failedBy, unauthenticated } from './failure.js';
import {
  type AuthMethod,
  type Initialized,
  initialize,
  initialized,
  newSession,
  protocolVersion,
  type SessionMade,
  sessionMade,
} from './lines.js';
import type { GivenVariables } from './presets.js';

/** Why there is no session. `asked`: the turn for which the agent was started with a model; else null. */
export type OpeningFailure = (asked: Turn | null) => TurnFailed;

export type OpeningStep =
  | StdinReply
  | { readonly type: 'open'; readonly session: SessionMade }
  | { readonly type: 'closed'; readonly failure: OpeningFailure };

/** What the agent has yet to answer. */
type Awaited =
  | { readonly name: 'initialize' | 'session' | 'login' }
  | { readonly name: 'mode'; readonly session: SessionMade; readonly request: ModeRequest };

export interface OpeningSettings {
  /** Absolute. */
  readonly workingDirectory: string;
  /** What the program sees of the service's environment. */
  readonly given: GivenVariables;
  /** The session mode to choose where the agent offers it; null: the strictest one. */
  readonly mode: string | null;
}

/** Owns the opening of a session: from the first request until the agent takes prompts. */
export class AcpOpening {
  readonly #settings: OpeningSettings;
  #awaited: Awaited = { name: 'initialize' };
  #lastId = -1;
  #agent: Initialized | null = null;
  readonly login: AcpLogin;

  constructor(settings: OpeningSettings) {
    this.#settings = settings;
    this.login = new AcpLogin(settings.given);
  }

  get lastId(): number {
    return this.#lastId;
  }

  /** What the agent says of itself; null before it has. */
  get agent(): Initialized | null {
    return this.#agent;
  }

  begin(): string {
    return this.#request(...initialize);
  }

  /** What follows from an answer; null where it answers nothing that was asked. */
  take(answer: RpcAnswer): OpeningStep | null {
    const isUnreadable = answer.type === 'error' && answer.id === null; // the agent could not even read the id
    if (answer.id !== this.#lastId && !isUnreadable) return null;
    return answer.type === 'error' ? this.#refused(answer.error) : this.#answered(answer.result);
  }

  #answered(result: unknown): OpeningStep {
    switch (this.#awaited.name) {
      case 'initialize':
        return this.#initialized(result);
      case 'login':
        return this.#askForSession();
      case 'session':
        return this.#made(result);
      case 'mode':
        return { type: 'open', session: this.#awaited.session };
    }
  }

  #initialized(result: unknown): OpeningStep {
    const { data } = initialized.safeParse(result);
    if (data === undefined) return closed(turnFailed('other', 'the model CLI says nothing of its protocol'));
    if (data.protocolVersion !== protocolVersion) return closed(otherVersion(data.protocolVersion));
    this.#agent = data;
    this.login.offered(data.authMethods);
    return this.#askForSession();
  }

  #askForSession(): OpeningStep {
    return this.#ask({ name: 'session' }, ...newSession(this.#settings.workingDirectory));
  }

  #made(result: unknown): OpeningStep {
    const { data: session } = sessionMade.safeParse(result);
    if (session === undefined) return closed(turnFailed('other', 'the model CLI opened no session'));
    const request = modeRequest(session, this.#settings.mode);
    if (request === null) return { type: 'open', session };
    return this.#ask({ name: 'mode', session, request }, request.method, request.params);
  }

  #refused(error: RpcError): OpeningStep {
    if (this.#awaited.name === 'mode') return this.#modeRefused(this.#awaited);
    const login = error.code === unauthenticated ? this.login.take() : null;
    if (login !== null) return this.#ask({ name: 'login' }, 'authenticate', login);
    return { type: 'closed', failure: (asked) => failedBy(error, 'opening', asked, this.login.ways) };
  }

  /** A mode that an agent offers and does not take might be all that keeps it from its tools. */
  #modeRefused({ session, request }: Extract<Awaited, { readonly name: 'mode' }>): OpeningStep {
    if (request.isCurrent) return { type: 'open', session };
    return closed(turnFailed('other', `the model CLI does not take its own mode ${request.mode}`));
  }

  #ask(awaited: Awaited, method: string, params: AcpRequest['params']): OpeningStep {
    this.#awaited = awaited;
    return { type: 'reply', text: this.#request(method, params) };
  }

  #request(method: string, params: AcpRequest['params']): string {
    return rpcRequest(++this.#lastId, method, params);
  }
}

function closed(failed: TurnFailed): OpeningStep {
  return { type: 'closed', failure: () => failed };
}

const maxLength = 300;

/** Owns how one agent may be logged in: by variables that it sees, and only once. */
export class AcpLogin {
  readonly #given: GivenVariables;
  #methods: readonly AuthMethod[] = [];
  #isUsed = false;

  /** `given`: what the program sees of the service's environment. */
  constructor(given: GivenVariables) {
    this.#given = given;
  }

  /** The agent offers these. */
  offered(methods: readonly AuthMethod[]): void {
    this.#methods = methods;
  }

  /** The parameters of `authenticate`, for the first method whose variables are set; null where there is none (any more). */
  take(): { readonly methodId: string } | null {
    const method = this.#isUsed ? undefined : this.#methods.find((each) => this.#isUsable(each));
    this.#isUsed = true;
    return method === undefined ? null : { methodId: method.id };
  }

  /** What the operator can do, in the agent's own words; empty where it offers nothing. */
  get ways(): string {
    const ways = this.#methods.map(({ id, name, vars }) => {
      const variables = vars.length === 0 ? '' : ` (MODEL_API_CLI_ENV=${vars.map((variable) => variable.name).join()})`;
      return `${name || id}${variables}`;
    });
    return ways.length === 0 ? '' : printable(`; ways to log in: ${ways.join('; ')}`).slice(0, maxLength);
  }

  #isUsable({ type, vars }: AuthMethod): boolean {
    return (
      type === 'env_var' &&
      vars.length > 0 &&
      vars.every(({ name, optional }) => optional === true || this.#given[name])
    );
  }
}

function otherVersion(version: number): TurnFailed {
  const message = `the model CLI speaks version ${version} of the Agent Client Protocol, not ${protocolVersion}`;
  return turnFailed('other', message);
}
