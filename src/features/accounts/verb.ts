import { addressFlags, type Command, jsonFlag } from '../../command/base/command.js';

/** Verb `accounts` of the command. Its code is loaded when it is called. */
export const accountsVerb: Command = {
  name: 'accounts',
  synopsis: '[list | check | add <name> <cli> | login <name> | remove <name>]',
  summary: 'show, add and log in the accounts of model CLIs',
  flags: {
    home: {
      type: 'string',
      values: 'file',
      placeholder: '<folder>',
      description:
        'add: HOME with the login; default: beside the other accounts, else in /var/lib/prompt-relay-accounts',
    },
    'token-file': {
      type: 'string',
      values: 'file',
      placeholder: '<file>',
      description: 'add: file with a token instead',
    },
    owners: { type: 'string', placeholder: '<a+b>', description: 'add: only these clients, such as key:ada+user:ada' },
    jobs: { type: 'string', placeholder: '<n>', description: 'add: running jobs at once' },
    file: {
      type: 'string',
      values: 'file',
      placeholder: '<file>',
      description: 'add, login, remove: the accounts file; default: MODEL_API_ACCOUNTS_FILE',
    },
    program: {
      type: 'string',
      placeholder: '<command>',
      description: "login: the program that logs in; default: that of the account's kind of CLI",
    },
    ...jsonFlag,
    ...addressFlags,
  },
  maxPositionals: 3,
  words: ['list', 'check', 'add', 'login', 'remove'],
  notes: [
    '"list" shows the state of each account, its quota, its owners and its last use; without the scope admin, only of your own accounts. "check" first checks all accounts, which needs the scope admin, and fails if one cannot be used.',
    '"add" adds a line to the accounts file and creates the HOME. "login" runs the login of the model CLI in this terminal, with the HOME of the account and as the user to whom it belongs. "remove" removes the line; the login stays in its HOME. A running service reads a changed file within a second; the last line says whether it uses the file.',
  ],
  examples: [
    'prompt-relay accounts',
    'prompt-relay accounts add ada claude --owners key:ada --file /etc/prompt-relay/accounts',
    'sudo prompt-relay accounts login ada --file /etc/prompt-relay/accounts',
    'prompt-relay accounts check',
  ],
  run: async (args, context) => (await import('./command.js')).runAccounts(args, context),
};
