import { stat } from 'node:fs/promises';
import { type FileBody, healthBody } from '../../shared/api/health.js';
import { type Clock, delay, timestamp } from '../../shared/clock.js';
import { formatCount } from '../../shared/text/format.js';
import type { Client } from './client.js';
import { type CommandArguments, type CommandContext, clientFor } from './command.js';
import { CommandError, exitCodes } from './errors.js';

/** Limit of the wait for a service to read a change, which usually takes a tenth of a second. */
const limitMs = 5000;
const pauseMs = 100;

/** Kind of file that a running service reads again. */
export interface EditedFile {
  readonly name: FileBody['name'];
  /** Variable of the service that names the file. */
  readonly variable: string;
  /** Event of the log that names the faults. */
  readonly event: string;
}

/** Prints whether the running service uses the present text of the file. */
export async function printUse(
  file: EditedFile,
  path: string,
  args: CommandArguments,
  context: CommandContext,
): Promise<void> {
  context.terminal.sentences(await useOf(file, path, () => clientFor(args, context), context.clock));
}

async function useOf(
  file: EditedFile,
  path: string,
  createClient: () => Promise<Client>,
  clock: Clock,
): Promise<string> {
  try {
    const client = await createClient();
    return await answerOf(client, file, path, clock).catch((error: unknown) => {
      if (!(error instanceof CommandError) || error.exitCode !== exitCodes.unavailable) throw error;
      return `No service answers at ${client.url}: it reads the file when it starts.`;
    });
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    return `Whether a running service uses this file is unknown: ${error.message}.`;
  }
}

/** Asks until the service has read the last change. An older change is never read later, so the command asks once. */
async function answerOf(
  client: Client,
  { name, variable, event }: EditedFile,
  path: string,
  clock: Clock,
): Promise<string> {
  const modifiedAt = Number((await stat(path, { bigint: true })).ctimeMs);
  const untilMs = Math.min(modifiedAt, clock.now()) + limitMs;
  for (;;) {
    const { files } = await client.getQuickly('/health', healthBody);
    if (files === undefined)
      return `Whether the service at ${client.url} uses this file is unknown: it is of an older version. Start it again.`;
    const file = files.find((each) => each.name === name);
    const service = `The service at ${client.url}`;
    if (file === undefined)
      return `${service} reads no such file: name this one in ${variable}, and start the service again.`;
    const faults = file.faults === 0 ? '' : `${formatCount(file.faults, 'fault')}, which its log names (${event})`;
    if (file.modified_at === timestamp(modifiedAt))
      return faults === '' ? `${service} uses this file.` : `${service} uses this file except for ${faults}.`;
    if (clock.now() >= untilMs)
      return `${service} does not use this file: it has another ${variable}, or cannot read it${faults === '' ? '' : ` (${faults})`}.`;
    await delay(clock, pauseMs);
  }
}
