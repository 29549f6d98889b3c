import { ask } from './ask.js';
import { chat } from './chat.js';
import type { Command } from './command.js';
import { completion } from './completion.js';
import { jobs } from './jobs.js';
import { keys } from './keys.js';
import { models } from './models.js';
import { check, serve } from './serve.js';
import { recheck, status } from './status.js';
import { store } from './store.js';
import { usage } from './usage.js';

/** All commands, as help, manual and completion show them. The first one is the default. */
export const commands: readonly [Command, ...Command[]] = [
  serve,
  check,
  ask,
  chat,
  status,
  jobs,
  models,
  usage,
  recheck,
  keys,
  store,
  completion,
];
