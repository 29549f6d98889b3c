#!/usr/bin/env node
import '../shared/node-version.js';

import { constants } from 'node:fs';
import { open, readFile, writeFile } from 'node:fs/promises';
import { systemClock } from '../shared/clock.js';
import { readProduct } from '../shared/config/product.js';
import { fileFault } from '../shared/text/system-error.js';
import { Client } from './base/client.js';
import { addressFrom, settingsFolders, storeSettings } from './base/environment.js';
import { CommandError, exitCodes, InterruptedError } from './base/errors.js';
import { LoginFile } from './base/login-file.js';
import { Terminal } from './base/terminal.js';
import { commands, parseCommandLine } from './command-line.js';
import { keyOptions } from './keys-file/key-options.js';
import { editKeysFile } from './keys-file/keys-file-edit.js';
import { commandHelp, programHelp } from './render/help.js';
import { loginPrograms } from './verbs/model-clis.js';
import { reportsCosts } from './verbs/serve.js';

const terminal = new Terminal(process.env);
const login = new LoginFile(process.env);

/** Resolves with the exit code, or with null if the process must keep running. */
async function main(): Promise<number | null> {
  const invocation = parseCommandLine(process.argv.slice(2));
  if (invocation.type === 'version') await terminal.writeLine(`prompt-relay ${readProduct().version}`);
  if (invocation.type === 'help') {
    const { command } = invocation;
    const columns = terminal.textColumns;
    await terminal.writeLine(command === null ? programHelp(commands, columns) : commandHelp(command, columns));
  }
  if (invocation.type !== 'run') return exitCodes.ok;
  return await invocation.command.run(invocation.args, {
    terminal,
    clock: systemClock,
    commands,
    login,
    files: {
      read: (path) => readFile(path),
      readRegular,
      create: (path, text) => writeFile(path, text, { flag: 'wx', mode: 0o600 }),
    },
    settingsFolders: () => settingsFolders(process.env),
    storeSettings: (flag, features) => storeSettings(flag, process.env, features),
    keysFilePath,
    keyOptions,
    editKeysFile: (path, mayMake, edit) => editKeysFile(path, systemClock, mayMake, edit),
    reportsCosts: () => reportsCosts(process.env),
    env: process.env,
    loginPrograms,
    readKeysFile: (path) => readKeysFile(keysFilePath(path)),
    createClient: async (flags) => new Client(await addressFrom(flags, process.env, readText, () => login.readLogin())),
  });
}

async function readRegular(path: string): Promise<Buffer> {
  await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  if ((await file.stat()).isFile()) return await file.readFile();
  throw Object.assign(new Error(`${path}: it is not a regular file`), { code: 'EINVAL' });
}

function readText(path: string): Promise<string> {
  return readFile(path, 'utf8');
}

function keysFilePath(option: string | undefined): string {
  const path = option === undefined ? process.env.MODEL_API_KEYS_FILE : option;
  if (path) return path;
  throw new CommandError(exitCodes.usage, 'keys: name a file, or set MODEL_API_KEYS_FILE');
}

function readKeysFile(path: string): Promise<string> {
  return readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new CommandError(exitCodes.config, `keys: ${fileFault(path, error)}`);
  });
}

/** Prints the error and returns the exit code. */
function report(error: unknown): number {
  if (error instanceof InterruptedError) return exitCodes.interrupted;
  const isExpected = error instanceof CommandError;
  const text = isExpected ? error.message : (error as Error).stack || String(error);
  terminal.sentences(`${terminal.messagePaint.red('prompt-relay:')} ${text}`);
  return isExpected ? error.exitCode : exitCodes.internal;
}

void main()
  .catch(report)
  .then(async (code) => {
    if (code === null) return;
    if (code !== exitCodes.interrupted) await terminal.flush();
    process.exit(code); // open connections would keep the process running
  });
