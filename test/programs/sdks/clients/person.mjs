import { z } from 'zod';

/** Schema of structured answers. */
export const person = z.object({ name: z.string(), age: z.number().int() });
export const personName = 'person';
export const personTool = 'note_person';
export const personUse = 'Notes a person.';

/** Returns a tool that records the name in each call. */
export function noting(called) {
  return ({ name }) => {
    called.push(name);
    return `Noted ${name}.`;
  };
}
