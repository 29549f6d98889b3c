import { type MessagesRequest, says, saysAndCalls } from '../../support/agents/messages-api-stub.js';
import type { SdkLab } from '../../support/clients/sdk-lab.js';

const model = 'claude-sonnet-5';

/** Model behaviour: calls two tools at once, then one more, then answers with all results that it received. */
function threeRounds({ body }: MessagesRequest) {
  const results = JSON.stringify(body.messages).match(/Noted \w+\./g) ?? [];
  const note = (name: string, age: number) => ({ name: 'note_person', input: { name, age } });
  if (results.length === 0) return saysAndCalls('Let me see.', note('Ada', 36), note('Bob', 40));
  return results.length === 2 ? saysAndCalls('', note('Cleo', 9)) : says('All noted: ', results.join(' '));
}

/** Tests the loops of an SDK, or those in its documentation, with the real claude behind the relay. */
export function describeLoops(
  lab: Pick<SdkLab, 'client' | 'claude' | 'api'>,
  face: string,
  calls: readonly string[] = ['steps', 'stepsStream'],
): void {
  it.each(calls)('runs its tools until the final answer of the model, in one process: %s', async (call) => {
    lab.api.behave = threeRounds;
    const before = lab.api.requests.length;
    const input = { model, prompt: 'Note them all.' };
    const { result, seen } = await lab.client.call<object>(lab.claude, face, call, input);
    expect(result).toEqual({
      text: expect.stringMatching(/All noted: Noted Ada\. Noted Bob\. Noted Cleo\.$/),
      called: ['Ada', 'Bob', 'Cleo'],
    });
    expect(seen.map((answer) => answer['x-session'])).toEqual(['replay', 'live', 'live']);
    expect(lab.api.requests.length - before).toBe(3);
  });
}
