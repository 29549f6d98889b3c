import { addressFlags, type Command, jsonFlag } from '../../command/base/command.js';

const words = ['add', 'end', 'list', 'report', 'enrol', 'limit', 'remove'];

/** Verb `course` of the command. Its code is loaded when it is called. */
export const courseVerb: Command = {
  name: 'course',
  synopsis:
    'add <course> [file] | end <course> [file] | list | report <course> | enrol <course> | limit <course> <member> | remove <course> <member>',
  summary: 'make, change, list and end courses: a group with a key for each person',
  flags: {
    until: { type: 'string', placeholder: '<day>', description: 'add: day (UTC) from which the course is refused' },
    roster: { type: 'string', placeholder: '<csv>', values: 'file', description: 'add, enrol: the people; - is stdin' },
    each: {
      ...{ type: 'string', multiple: true, placeholder: '<limit>' },
      description: 'add: limit of each person, such as tokens=200000/week or cost=5/month',
    },
    tokens: {
      type: 'string',
      placeholder: '<n/period>',
      description: 'add: tokens of all together; limit: of the member',
    },
    cost: {
      type: 'string',
      placeholder: '<n/period>',
      description: 'add: dollars of all together; limit: of the member',
    },
    models: { type: 'string', placeholder: '<a+b>', description: 'add, limit: the only models that requests may name' },
    'sign-on': { type: 'boolean', description: 'add: a proxy signs the people on; they get no keys' },
    'remove-absent': { type: 'boolean', description: 'add: remove the members who are not on the roster' },
    sheet: {
      type: 'string',
      placeholder: '<csv>',
      description: 'add, enrol: new file for the keys; default: <course>-keys.csv',
    },
    remove: { type: 'boolean', description: 'end: also remove the course and its keys from the keys file' },
    'dry-run': { type: 'boolean', description: 'add, end: only say what would change' },
    ...jsonFlag,
    ...addressFlags,
  },
  maxPositionals: 3,
  words,
  notes: [
    '"add" and "end" edit the keys file, which the last argument names; default: MODEL_API_KEYS_FILE. A running service reads it within a second. The other actions ask the service, as an administrator or as the teacher of the course, whose key has the option admin=@<course>. "enrol" adds people, and "limit" and "remove" change those who were added so.',
    'The roster is CSV in UTF-8 with a login or an e-mail address in each line, and optionally a name, separated by commas, semicolons or tabs, with or without a header. All its faults are printed, and nothing is changed if there is one.',
    '"add" writes each new key to the sheet, which only you can read, and nowhere else. Called again with a changed roster, it adds the new people, leaves the keys of the others as they are, and names those who are absent.',
  ],
  examples: [
    'prompt-relay course add bio101 --until 2027-07-15 --roster people.csv --each tokens=200000/week',
    'prompt-relay course add bio101 --roster changed.csv --remove-absent --sheet new-keys.csv',
    'prompt-relay course limit bio101 bio101-ada --tokens 50000/week',
    'prompt-relay course report bio101 > bio101.csv',
    'prompt-relay course end bio101',
  ],
  run: async (args, context) => (await import('./command.js')).runCourse(args, context),
};
