import { z } from 'zod';

/** What structured answers are asked for. */
export const person = z.object({ name: z.string(), age: z.number().int() });
export const personName = 'person';
export const personTool = 'note_person';
export const personUse = 'Notes a person.';

/** What the tool does: it notes whom it was called for. */
export function noting(called) {
  return ({ name }) => {
    called.push(name);
    return `Noted ${name}.`;
  };
}
