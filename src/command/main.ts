#!/usr/bin/env node
import { readFile } from 'node:fs/promises';
import { systemClock } from '../shared/clock.js';
import { readProduct } from '../shared/product.js';
import { addressFrom } from './address.js';
import { orderOf } from './arguments.js';
import { ask } from './ask.js';
import { chat } from './chat.js';
import { Interrupted } from './chat-lines.js';
import { check } from './check.js';
import { Client } from './client.js';
import type { Command } from './command.js';
import { CommandFault, exitCodes } from './exit-codes.js';
import { models } from './models.js';
import { recheck } from './recheck.js';
import { commandHelp, programHelp } from './render/help.js';
import { plain } from './render/paint.js';
import { serve } from './serve.js';
import { status } from './status.js';
import { Terminal } from './terminal.js';

/** The first one is meant where none is named. */
const commands: readonly [Command, ...Command[]] = [serve, check, ask, chat, status, recheck, models];

const terminal = new Terminal(process.env);

/** Resolves with the exit code, or null when the program is to live on. */
async function main(): Promise<number | null> {
  const order = orderOf(process.argv.slice(2), commands);
  if (order.type === 'version') await terminal.line(`prompt-relay ${readProduct().version}`);
  if (order.type === 'help') {
    await terminal.line(order.command === null ? programHelp(commands) : commandHelp(order.command));
  }
  if (order.type !== 'run') return exitCodes.ok;
  return await order.command.run(order.given, {
    terminal,
    clock: systemClock,
    client: async (flags) => new Client(await addressFrom(flags, process.env, (path) => readFile(path, 'utf8'))),
  });
}

function explain(error: unknown): number {
  if (error instanceof Interrupted) return exitCodes.interrupted;
  const isFault = error instanceof CommandFault;
  const text = isFault ? error.message : ((error as Error).stack ?? String(error));
  terminal.say(`${terminal.talkPaint.red('prompt-relay:')} ${terminal.isTalkative ? plain(text) : text}`);
  return isFault ? error.exitCode : exitCodes.internal;
}

void main()
  .catch(explain)
  .then((code) => {
    // Connections that are kept for a next request would keep the program.
    if (code !== null) process.exit(code);
  });
