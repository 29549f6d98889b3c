import { refuseTools } from '../../primary/cli/adapters/common/offered-tools.js';
import type {
  Adapter,
  Consult,
  LaunchOptions,
  ModelEntry,
  PrivateHome,
  ProgramVersion,
} from '../../primary/cli/contract/adapter.js';
import type { Callback } from '../../primary/cli/contract/callbacks.js';
import { cliError } from '../../shared/errors.js';
import { rpcMessage, rpcRequest } from '../protocols/json-rpc.js';
import { AgentTools } from './agent-tools.js';
import { modelsOf } from './choices.js';
import { type Initialized, refused, type SessionMade } from './lines.js';
import { toolsIn } from './offered-names.js';
import { AcpOpening, errorOf, type OpeningFailure, type OpeningSettings } from './opening.js';
import type { AcpPreset, AcpTrial, GivenVariables } from './presets.js';
import { AcpSession, imageBlock } from './session.js';

export interface AcpOptions {
  readonly extraArgs: readonly string[];
  /** Environment variables that the program inherits from the service. */
  readonly givenVariables: GivenVariables;
  /** Further files below HOME to link into the private HOME. */
  readonly homeFiles: readonly string[];
  /** Whether requests may offer tools. If not, agents get no callback. */
  readonly mayHaveTools: boolean;
}

/** Adapter for any agent with version 1 of the Agent Client Protocol, with one session of many turns per process. */
export function acpAdapter(
  name: string,
  preset: AcpPreset,
  command: readonly [program: string, ...args: string[]] | null,
  options: AcpOptions,
): Adapter {
  const [program, ...leading] = command ?? preset.command;
  const args = [...leading, ...preset.args, ...options.extraArgs];
  const tools = options.mayHaveTools ? preset.tools : undefined;
  return {
    name,
    command: [program], // further words may contain {model}, so they belong to the plan
    credentialVariable: null,
    env: preset.env,
    home: homeOf(preset, options),
    homeLogin: preset.credentials.length + options.homeFiles.length === 0 ? null : (preset.homeLogin ?? {}),
    homeLoginAdvice: 'name its files in MODEL_API_CLI_HOME_FILES',
    ...(preset.hostFolder !== undefined && { hostFolder: preset.hostFolder }),
    models: null,
    ...(preset.modelForm !== undefined && { modelForm: preset.modelForm }),
    learn: (consult) =>
      learn(
        consult,
        args,
        tools,
        { givenVariables: options.givenVariables, mode: preset.mode ?? null },
        trialOf(name, preset, options),
      ),
  };
}

/** Trial of a known agent. */
type NamedTrial = AcpTrial & { readonly agent: string };

/** Returns the trial of an agent; null if the operator may have enabled tools, or if the login prevents a trial. */
function trialOf(agent: string, { trial, env }: AcpPreset, options: AcpOptions): NamedTrial | null {
  const { extraArgs, homeFiles, givenVariables } = options;
  const isChanged = extraArgs.length + homeFiles.length > 0 || Object.keys(env).some((name) => name in givenVariables);
  if (trial === undefined || isChanged || trial.isPossible?.(givenVariables) === false) return null;
  return { ...trial, agent };
}

function homeOf({ folders, files, credentials }: AcpPreset, { givenVariables, homeFiles }: AcpOptions): PrivateHome {
  const written = Object.entries(files(givenVariables)).map(([path, text]) => ({ path, text }));
  const linked = givenVariables.HOME === undefined ? [] : [...credentials, ...homeFiles];
  return {
    variables: folders,
    files: written,
    links: linked.map((path) => ({ path, to: `${givenVariables.HOME}/${path}` })),
  };
}

async function learn(
  consult: Consult,
  args: readonly string[],
  tools: AcpPreset['tools'],
  settings: AgentQuery['settings'],
  trial: NamedTrial | null,
): Promise<ProgramVersion> {
  const queryWith = (consult: Consult): AgentQuery => ({ consult, args: argsFor(args, null), settings });
  const tried = trial && (await tryAgent(queryWith(consult), trial));
  const { agentInfo, agentCapabilities } = tried?.agent ?? (await askAgent(queryWith(consult)));
  const choosesModel = !args.some(holdsModel);
  const callsTools = tools !== undefined && agentCapabilities?.mcpCapabilities?.http === true;
  return {
    version: agentInfo?.version ?? null,
    isProvisional: tried?.isProven === false,
    keptParts: [], // each session has a model and tools of its own, and the system text precedes its first message
    extras: {
      thoughts: true,
      ...(agentCapabilities?.promptCapabilities?.image === true && { image: imageBlock }),
      ...(callsTools && { tools: 'single' }),
    },
    plan: ({ model }: LaunchOptions) => ({ args: argsFor(args, model), files: [] }),
    protocol: () => {
      const session = new AcpSession(choosesModel, callsTools ? new AgentTools(tools.ownArguments) : null);
      const opening = (workingDirectory: string, callback: Callback | null = null) =>
        session.openSession({ ...settings, workingDirectory }, callback);
      return { writer: session, decoder: session, opening };
    },
    check: (consult) => checkAgent(queryWith(consult)),
    listModels: (consult) => listModels(queryWith(consult)),
  };
}

const modelPlace = '{model}';

function holdsModel(arg: string | undefined): boolean {
  return arg?.includes(modelPlace) === true;
}

/** Puts the model into the arguments. Without a model, drops each argument with `{model}` and the flag before it. */
function argsFor(args: readonly string[], model: string | null): readonly string[] {
  if (model !== null) return args.map((arg) => arg.replaceAll(modelPlace, model));
  return args.filter((arg, index) => !holdsModel(arg) && !(arg.startsWith('-') && holdsModel(args[index + 1])));
}

const notLoggedIn = 'the model CLI is not logged in';

/** Working directory of the program, as an absolute path that is valid before the directory is known. */
const ownFolder = '/proc/self/cwd';

/** Parameters of a query to an agent about itself. */
interface AgentQuery {
  readonly consult: Consult;
  readonly args: readonly string[];
  readonly settings: Omit<OpeningSettings, 'workingDirectory'>;
}

/** What a trial has found. `agent`: the answer to `initialize`; null if there was none. */
interface TriedAgent {
  readonly agent: Initialized | null;
  /** Whether the trial came to an end: the agent sent its request, refused the trial, or exited. False after an error, such as a passed time limit. */
  readonly isProven: boolean;
}

/**
 * Tries an agent with a prompt whose request goes to the relay and not to the model. Throws `cli_error` if the agent
 * offers the model a tool. An agent that refuses the trial counts as proven.
 */
async function tryAgent(query: AgentQuery, trialOfAgent: NamedTrial): Promise<TriedAgent> {
  const { agent: name, args, env } = trialOfAgent;
  const trialConsult: Consult = (given, input, isEnough) => query.consult(given, input, isEnough, undefined, env);
  const trial = { ...query, consult: trialConsult, args: [...query.args, ...args] };
  const opening = openingOf(trial);
  const opened = await openedBy(trial, 'request', opening).catch(() => null);
  const { agent } = opening;
  const request = opened?.request;
  if (request !== undefined) refuseTools(name, agent?.agentInfo?.version ?? null, toolsIn(request));
  return { agent, isProven: opened !== null };
}

/** Returns the agent's answer to `initialize`. Throws `cli_error` if the agent does not speak the protocol. */
async function askAgent(query: AgentQuery): Promise<Initialized> {
  const { agent, failure } = await openedBy(query, 'agent');
  if (agent !== null) return agent;
  if (failure !== null) throw errorOf(failure(null));
  throw cliError('other', 'the model CLI does not answer initialize: it may not support ACP');
}

/**
 * Returns why the login is missing, if the agent checks it before a prompt; else null. Spends no tokens. Throws
 * `cli_error` for another fault.
 */
async function checkAgent(query: AgentQuery): Promise<string | null> {
  const { session, failure } = await openedBy(query, 'session');
  if (session !== null) return hasNoModel(session) ? `${notLoggedIn}: it offers no model` : null;
  if (failure === null) throw cliError('other', 'the model CLI does not open a session');
  const failed = failure(null);
  if (failed.reason !== 'auth') throw errorOf(failed);
  return failed.message.replace(/^the model CLI reports/, notLoggedIn);
}

/** Returns the agent's models; null if it does not list them. */
async function listModels(query: AgentQuery): Promise<readonly ModelEntry[] | null> {
  const { session } = await openedBy(query, 'session');
  return session === null || hasNoModel(session) ? null : modelsOf(session);
}

/** Whether the agent offers no model. Some agents then still name a current one, such as `unknown/unknown`. */
function hasNoModel({ models, configOptions: { model } }: SessionMade): boolean {
  return model !== null && model.options.length === 0 && (models?.availableModels.length ?? 0) === 0;
}

function openingOf({ settings }: Pick<AgentQuery, 'settings'>): AcpOpening {
  return new AcpOpening({ ...settings, workingDirectory: ownFolder });
}

/** Opens an agent until the wanted answer has arrived, or the agent refuses. */
async function openedBy(
  query: AgentQuery,
  wanted: 'agent' | 'session' | 'request',
  opening: AcpOpening = openingOf(query),
) {
  const { consult, args } = query;
  const reader = new OpeningReader(opening, wanted === 'request');
  const isOver = () => reader.end !== null || (wanted === 'agent' && opening.agent !== null);
  const isEnough = (printed: string) => {
    const replies = reader.read(printed.slice(0, printed.lastIndexOf('\n') + 1));
    return isOver() || asksToLogIn(printed) || replies;
  };
  const { stdout, request } = await consult(args, opening.firstRequest(), isEnough);
  reader.read(`${stdout}\n`); // the last line may lack a newline
  if (opening.agent === null && reader.end === null && asksToLogIn(stdout)) throw cliError('auth', notLoggedIn);
  const { session = null, failure = null } = reader.end ?? {};
  return { agent: opening.agent, session, failure, request };
}

/** Reads the output of an agent while a session is opened. */
class OpeningReader {
  readonly #opening: AcpOpening;
  readonly #prompts: boolean;
  #promptId: number | null = null;
  #length = 0;
  end: { readonly session?: SessionMade; readonly failure?: OpeningFailure } | null = null;

  /** `prompts`: whether the session gets a prompt, and ends with its answer. */
  constructor(opening: AcpOpening, prompts: boolean) {
    this.#opening = opening;
    this.#prompts = prompts;
  }

  /** `printed`: all complete lines so far. Returns the text to write. */
  read(printed: string): string {
    const lines = printed.slice(this.#length).split('\n');
    this.#length = printed.length;
    return lines.map((line) => this.#replyTo(line)).join('');
  }

  #replyTo(line: string): string {
    const message = rpcMessage(line);
    if (message === null || message.type === 'notification') return '';
    if (message.type === 'request')
      return refused(message)
        .map((aside) => (aside.type === 'reply' ? aside.text : ''))
        .join('');
    const step = this.#opening.readAnswer(message);
    if (this.#promptId !== null && message.id === this.#promptId) this.end ??= {};
    if (step?.type === 'open' && this.#prompts) {
      this.#promptId = this.#opening.lastId + 1;
      return promptOf(step.session, this.#promptId);
    }
    if (step?.type === 'open' || step?.type === 'closed') this.end ??= step;
    return step?.type === 'reply' ? step.text : '';
  }
}

/** Returns the prompt of a trial. */
function promptOf({ sessionId }: SessionMade, id: number): string {
  return rpcRequest(id, 'session/prompt', { sessionId, prompt: [{ type: 'text', text: 'A trial.' }] });
}

/**
 * Whether the agent waits for a login at the terminal. Protocol messages are ignored, because they may mention a login
 * too.
 */
function asksToLogIn(stdout: string): boolean {
  const printed = stdout.replace(/^\s*\{.*/gm, '');
  return /authorization code|visit the following URL|log ?in to continue/i.test(printed);
}
