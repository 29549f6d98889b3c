import { cliError } from '../../../shared/errors.js';
import type { Consult, ModelEntry } from '../adapter.js';
import { errorOf, failedBy, otherVersion } from './acp-failure.js';
import { type Initialized, initialize, initialized, newSession, protocolVersion, sessionMade } from './acp-lines.js';
import { modelsOf } from './acp-models.js';
import { type RpcMessage, rpcMessage, rpcRequest } from './json-rpc.js';

const notLoggedIn = 'the model CLI is not logged in';

type RpcAnswer = Extract<RpcMessage, { readonly type: 'result' | 'error' }>;

/** The program's own working directory, by a path that is absolute without being known. */
const ownFolder = '/proc/self/cwd';

const requests = [rpcRequest(0, ...initialize), rpcRequest(1, ...newSession(ownFolder))];

/** What the agent says of itself. Throws `cli_error` where it does not speak the protocol. */
export async function askAgent(consult: Consult, args: readonly string[]): Promise<Initialized> {
  const [answer] = await answers(consult, args, 1);
  if (answer?.type === 'error') throw errorOf(failedBy(answer.error, 'opening', null));
  const { data } = initialized.safeParse(answer?.result);
  if (data === undefined) throw cliError('other', 'the model CLI does not answer initialize: it may speak no ACP');
  if (data.protocolVersion !== protocolVersion) throw errorOf(otherVersion(data.protocolVersion));
  return data;
}

/** Tells whether there is a login, as far as the agent looks before it is asked anything. Spends no tokens. */
export async function checkAgent(consult: Consult, args: readonly string[]): Promise<string | null> {
  const [, session] = await answers(consult, args, 2);
  const isOpen = session?.type === 'result' && sessionMade.safeParse(session.result).success;
  if (isOpen) return null;
  if (session?.type !== 'error') return 'the model CLI opens no session';
  const { reason, message } = failedBy(session.error, 'opening', null);
  return reason === 'auth' ? message.replace(/^the model CLI reports/, notLoggedIn) : message;
}

/** null where the agent does not list them. */
export async function listModels(consult: Consult, args: readonly string[]): Promise<readonly ModelEntry[] | null> {
  const [, session] = await answers(consult, args, 2);
  const made = session?.type === 'result' ? sessionMade.safeParse(session.result).data : undefined;
  return made === undefined ? null : modelsOf(made);
}

/** The answers to the first `count` requests, by their place. They are written at once: agents read one after the other. */
async function answers(consult: Consult, args: readonly string[], count: number): Promise<(RpcAnswer | undefined)[]> {
  const asked = requests.slice(0, count);
  const told = (printed: string) => {
    const found = answersIn(printed);
    return asked.map((_, id) => found.find((answer) => answer.id === id));
  };
  const isWhole = (printed: string) => !told(printed).includes(undefined) || answersIn(printed).some(isUnreadable);
  const isEnough = (printed: string) => isWhole(printed) || asksToLogIn(printed);
  const { stdout } = await consult(args, asked.join(''), isEnough);
  const found = told(stdout);
  if (found[0] === undefined && asksToLogIn(stdout)) throw cliError('auth', notLoggedIn);
  return found;
}

/** It could not even read the id of what it was asked. */
function isUnreadable({ type, id }: RpcAnswer): boolean {
  return type === 'error' && id === null;
}

/** Some ask whoever sits at the terminal, and would wait for ever. Messages of the protocol may speak of a login, too. */
function asksToLogIn(stdout: string): boolean {
  const printed = stdout.replace(/^\s*\{.*/gm, '');
  return /authorization code|visit the following URL|log ?in to continue/i.test(printed);
}

function answersIn(stdout: string): RpcAnswer[] {
  const messages = stdout.split('\n').map(rpcMessage);
  return messages.filter((message) => message?.type === 'result' || message?.type === 'error') as RpcAnswer[];
}
