import { z } from 'zod';
import {
  type FailureTable,
  failedTurn,
  printable,
  quotaOfModel,
  turnFailed,
  wordsOfApi,
} from '../../primary/cli/adapters/common/failure.js';
import type { StdinReply, Turn, TurnFailed } from '../../primary/cli/contract/adapter.js';
import { cliError, type RelayError } from '../../shared/errors.js';
import { type RpcAnswer, type RpcError, rpcRequest } from '../protocols/json-rpc.js';
import type { McpServer } from './agent-tools.js';
import { type AcpRequest, type ModeRequest, modeRequest } from './choices.js';
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

/** Returns why no session was opened. `turn`: the turn whose model is in the agent's arguments, or null. */
export type OpeningFailure = (turn: Turn | null) => TurnFailed;

export type OpeningStep =
  | StdinReply
  | { readonly type: 'open'; readonly session: SessionMade }
  | { readonly type: 'closed'; readonly failure: OpeningFailure };

/** Request that the agent has not answered yet. */
type Awaited =
  | { readonly name: 'initialize' | 'session' | 'login' }
  | { readonly name: 'mode'; readonly session: SessionMade; readonly request: ModeRequest };

export interface OpeningSettings {
  /** Absolute path. */
  readonly workingDirectory: string;
  /** Environment variables that the program inherits from the service. */
  readonly givenVariables: GivenVariables;
  /** Session mode to choose if the agent offers it; null for the strictest one. */
  readonly mode: string | null;
}

/** Owns the opening of a session, from the first request until the agent accepts prompts. */
export class AcpOpening {
  readonly #settings: OpeningSettings;
  #awaited: Awaited = { name: 'initialize' };
  #lastId = -1;
  #awaitedMethod = '';
  #agent: Initialized | null = null;
  readonly login: AcpLogin;

  constructor(settings: OpeningSettings) {
    this.#settings = settings;
    this.login = new AcpLogin(settings.givenVariables);
  }

  get lastId(): number {
    return this.#lastId;
  }

  /** Answer to `initialize`; null before it. */
  get agent(): Initialized | null {
    return this.#agent;
  }

  /** Method of the request that the agent has not answered yet. */
  get awaitedMethod(): string {
    return this.#awaitedMethod;
  }

  firstRequest(): string {
    return this.#request(...initialize);
  }

  /** Opens another session in the process. `lastId`: id of the last request. */
  another(lastId: number, servers: readonly McpServer[]): string {
    this.#lastId = lastId;
    this.#awaited = { name: 'session' };
    return this.#request(...newSession(this.#settings.workingDirectory, servers));
  }

  /** Returns the next step after an answer; null if the answer belongs to no open request. */
  readAnswer(answer: RpcAnswer): OpeningStep | null {
    const isUnreadable = answer.type === 'error' && answer.id === null; // the agent could not read even the id
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
    if (data === undefined) return closed(turnFailed('other', 'the model CLI does not report its protocol version'));
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
    if (session === undefined) return closed(turnFailed('other', 'the model CLI did not open a session'));
    const request = modeRequest(session, this.#settings.mode);
    if (request === null) return { type: 'open', session };
    return this.#ask({ name: 'mode', session, request }, request.method, request.params);
  }

  #refused(error: RpcError): OpeningStep {
    if (this.#awaited.name === 'mode') return this.#modeRefused(this.#awaited);
    const login = error.code === unauthenticated ? this.login.chooseMethod() : null;
    if (login !== null) return this.#ask({ name: 'login' }, 'authenticate', login);
    return { type: 'closed', failure: (turn) => failedBy(error, 'opening', turn, this.login.ways) };
  }

  /** Fails if the agent rejects a mode that it offers, because this mode may be the only barrier to its tools. */
  #modeRefused({ session, request }: Extract<Awaited, { readonly name: 'mode' }>): OpeningStep {
    if (request.isCurrent) return { type: 'open', session };
    return closed(turnFailed('other', `the model CLI refuses its mode ${request.mode}`));
  }

  #ask(awaited: Awaited, method: string, params: AcpRequest['params']): OpeningStep {
    this.#awaited = awaited;
    return { type: 'reply', text: this.#request(method, params) };
  }

  #request(method: string, params: AcpRequest['params']): string {
    this.#awaitedMethod = method;
    return rpcRequest(++this.#lastId, method, params);
  }
}

function closed(failed: TurnFailed): OpeningStep {
  return { type: 'closed', failure: () => failed };
}

const maxLength = 300;

/** Owns the login of one agent, which uses variables in its environment, and is tried only once. */
export class AcpLogin {
  readonly #givenVariables: GivenVariables;
  #methods: readonly AuthMethod[] = [];
  #isUsed = false;

  /** `variables`: environment variables that the program inherits from the service. */
  constructor(variables: GivenVariables) {
    this.#givenVariables = variables;
  }

  /** Stores the methods that the agent offers. */
  offered(methods: readonly AuthMethod[]): void {
    this.#methods = methods;
  }

  /**
   * Returns the parameters of `authenticate` for the first method whose variables are set; null if no method fits, or
   * after the first use.
   */
  chooseMethod(): { readonly methodId: string } | null {
    const method = this.#isUsed ? undefined : this.#methods.find((each) => this.#isUsable(each));
    this.#isUsed = true;
    return method === undefined ? null : { methodId: method.id };
  }

  /** Returns the agent's login methods as a hint for the operator; empty if it offers none. */
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
      vars.every(({ name, optional }) => optional === true || this.#givenVariables[name])
    );
  }
}

function otherVersion(version: number): TurnFailed {
  const message = `the model CLI speaks version ${version} of the Agent Client Protocol, not ${protocolVersion}`;
  return turnFailed('other', message);
}

/** Error code of the protocol: authentication required. */
export const unauthenticated = -32000;

/**
 * JSON-RPC has no codes for other causes. Agents pass on the HTTP status of their model's API, as the code or in the
 * data.
 */
const table: FailureTable = {
  codes: [['code', unauthenticated, 'auth', 'account']],
  words: [
    [/\b429\b|rate.?limit|quota|RESOURCE_EXHAUSTED|too many requests|credit balance|billing/i, 'quota'],
    [/prompt is too long|context.(length|window)|(maximum|exceeds).{0,40}tokens/i, 'prompt_too_long'],
    [
      /\b401\b|\b403\b|unauthori[sz]ed|unauthenticated|api.?key|\blog.?in\b|authentication|user location is not supported/i,
      'auth',
    ],
    [/overloaded|\b503\b|\b529\b|UNAVAILABLE/i, 'overloaded'],
    [
      /model.{0,80}(not found|not supported|does not exist|unknown)|(not found|unknown|invalid).{0,40}model/i,
      'model_unknown',
    ],
  ],
};

/**
 * Step in which the agent reported an error. `opening`: it opened the session, with the model of the turn, if any, in
 * its arguments. `choosing`: the relay set the model. `asked`: the agent worked on the turn.
 */
export type AcpStep = 'opening' | 'choosing' | 'asked';

/**
 * Returns the failure for an error. `turn` is null if the agent has received no data of a client. `ways` lists login
 * methods, added if the login is missing.
 */
export function failedBy({ code, message, data }: RpcError, step: AcpStep, turn: Turn | null, ways = ''): TurnFailed {
  const isOfModel = step !== 'asked' && turn !== null && turn.model !== null;
  const failed = failedTurn(table, {
    codes: [
      ['code', code],
      ['status', code],
      ['status', statusOf(data)],
    ],
    words: wordsOf(message, data),
    turn,
    uncoded: isOfModel ? 'model_unknown' : undefined,
    isOfRequest: isOfRequest(code, step, turn?.model ?? null),
    quota: quotaOfModel,
  });
  return failed.reason === 'auth' ? { ...failed, message: failed.message + ways } : failed;
}

/**
 * Whether the request may have caused a refused login. Agents also report a missing login because of the content or the
 * model of a request. A model with the name of a provider, as in `openai/gpt-5`, may use another account.
 */
function isOfRequest(code: number, step: AcpStep, model: string | null): boolean {
  if (code === unauthenticated) return step !== 'opening' || model !== null;
  return step === 'choosing' || (model?.includes('/') ?? false);
}

export function errorOf(failed: TurnFailed): RelayError {
  return cliError(failed.reason, failed.message, failed);
}

/** Returns the words of an error. Some agents report `Internal error` and put the cause into the data. */
function wordsOf(message: string, data: unknown): string {
  const detail = /^(internal error|invalid params)\.?$/i.test(message.trim())
    ? detailed.safeParse(data).data
    : undefined;
  return wordsOfApi(detail ?? message);
}

const details = z.object({ details: z.string() }).transform((data) => data.details);
const saying = z.object({ message: z.string() }).transform((data) => data.message);
const detailed = z.union([z.string(), details, saying]);

const numbered = z.object({ status: z.number().optional(), statusCode: z.number().optional() });

/** Returns the HTTP status in the data of an error, or null. */
function statusOf(data: unknown): number | null {
  const found = numbered.safeParse(data).data;
  return found?.status ?? found?.statusCode ?? null;
}
