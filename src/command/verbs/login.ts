import { type CallerBody, callerReport } from '../../shared/api/caller.js';
import { isLoopback } from '../../shared/config/addresses.js';
import { checkKey } from '../../shared/config/api-keys.js';
import { escaped } from '../../shared/text/paint.js';
import type { Client } from '../base/client.js';
import { alignColumns } from '../base/columns.js';
import { addressFlags, type Command, clientFor, jsonFlag, show } from '../base/command.js';
import { CommandError, exitCodes } from '../base/errors.js';
import type { Terminal } from '../base/terminal.js';

export const login: Command = {
  name: 'login',
  synopsis: '[url]',
  summary: 'store the address of a service and your API key',
  flags: {},
  maxPositionals: 1,
  notes: [
    'The command reads the key from the terminal or from stdin. If the service accepts it, the command stores it in prompt-relay/login.json in $XDG_CONFIG_HOME or ~/.config, which only you can read. Without a URL, it uses the same service as the other commands.',
    'Flags and the variables MODEL_API_URL, MODEL_API_KEY and MODEL_API_KEY_FILE have priority over the login.',
  ],
  examples: ['prompt-relay login https://relay.example.org', 'prompt-relay login relay:5051 < key.txt'],
  run: async (args, context) => {
    const { terminal } = context;
    const [url] = args.positionals;
    const { url: place } = await context.createClient({ url, key: null });
    warnOfPlainText(place, terminal);
    const key = await readKey(place, terminal);
    const caller = await callerAt(await context.createClient({ url: place, key }));
    const path = await context.login.writeLogin({ url: place, key });
    await terminal.writeLine(`Logged in to ${place} as ${nameOf(caller)}.`);
    terminal.message(`The login is in ${path}. "prompt-relay logout" removes it.`);
    return exitCodes.ok;
  },
};

export const logout: Command = {
  name: 'logout',
  synopsis: '',
  summary: 'remove the stored address and API key',
  flags: {},
  maxPositionals: 0,
  notes: ['The key stays valid at the service.'],
  examples: ['prompt-relay logout'],
  run: async (_args, { login: file, terminal }) => {
    const isRemoved = await file.removeLogin();
    await terminal.writeLine(isRemoved ? 'The login is removed.' : 'There is no login.');
    return exitCodes.ok;
  },
};

export const whoami: Command = {
  name: 'whoami',
  synopsis: '',
  summary: 'show which service answers, and how it identifies you',
  flags: { ...jsonFlag, ...addressFlags },
  maxPositionals: 0,
  examples: ['prompt-relay whoami', 'prompt-relay whoami --url relay.example.org:5051'],
  run: async (args, context) => {
    const client = await clientFor(args, context);
    const caller = await callerAt(client);
    return show(args, context.terminal, { url: client.url, ...caller }, () =>
      alignColumns([
        ['service', client.url],
        ['client', nameOf(caller)],
        ['scopes', caller.scopes === null ? 'none: the service needs no key' : caller.scopes.join(', ')],
      ]),
    );
  },
};

/**
 * Path of a report without rows, because its first day is in the far future. The response has little more than the
 * caller.
 */
const whoPath = '/usage?since=9999-12-31';

/** Resolves with the caller as the service identifies it. Rejects with a CommandError if the service refuses the key. */
export async function callerAt(client: Client): Promise<CallerBody> {
  const { caller } = await client.getState(whoPath, callerReport);
  return caller;
}

/** Returns kind and name of a client. The service has sent them, so control characters are escaped. */
function nameOf({ kind, client }: CallerBody): string {
  return escaped(`${kind} ${client}`);
}

/**
 * Reads a key; null if the line is empty. The key is never an argument, because other users can see arguments with ps.
 */
async function readKey(place: string, terminal: Terminal): Promise<string | null> {
  const prompt = `API key for ${place} (not shown; empty if it needs none): `;
  const key = (terminal.isStdinTty ? await terminal.readSecret(prompt) : await terminal.readStdin()).trim();
  if (key === '') return null;
  try {
    checkKey(key);
    return key;
  } catch (error) {
    throw new CommandError(exitCodes.usage, `login: ${(error as Error).message}`);
  }
}

function warnOfPlainText(place: string, terminal: Terminal): void {
  if (!place.startsWith('http:') || isLoopback(new URL(place).hostname.replace(/^\[|\]$/g, ''))) return;
  terminal.sentences(
    `${terminal.messagePaint.yellow('warning')}  ${place} is not encrypted: others on the network can read the key`,
  );
}
