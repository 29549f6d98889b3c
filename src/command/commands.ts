import type { Command } from './base/command.js';
import { ask } from './verbs/ask.js';
import { chat } from './verbs/chat.js';
import { completion } from './verbs/completion.js';
import { jobs } from './verbs/jobs.js';
import { keys } from './verbs/keys.js';
import { models } from './verbs/models.js';
import { check, serve } from './verbs/serve.js';
import { recheck, status } from './verbs/status.js';
import { store } from './verbs/store.js';
import { usage } from './verbs/usage.js';

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
