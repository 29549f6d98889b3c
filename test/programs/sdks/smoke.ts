import { keys, type SdkFace, type SdkLab } from '../../support/clients/sdk-lab.js';
import { recovers } from '../../support/jobs/jobs.js';
import { describeLoops } from './loops.js';

/** One interface of an SDK that sends the requests of another one, which is tested in full. */
export interface WrappedFace extends Pick<SdkFace, 'name' | 'endings' | 'structured' | 'objects'> {
  /** Class of the error for a wrong key. */
  readonly refusal: string;
}

/** Tests an answer, a conversation, a value, a tool and a failure of an SDK that wraps the API of another one. */
export function describeSmoke(lab: SdkLab, face: WrappedFace): void {
  const echo = { model: 'echo', prompt: 'grüße 🚀 to all' };

  it('gets an answer, plain and streamed, with the tokens used', async () => {
    const answer = await lab.client.ask(lab.demo, face.name, 'ask', echo);
    const whole = { text: echo.prompt, finish: face.endings.whole };
    expect(answer).toMatchObject({ ...whole, model: 'echo', usage: { input: 4, output: 4 } });
    const streamed = await lab.client.ask(lab.demo, face.name, 'stream', echo);
    expect(streamed).toMatchObject({ ...whole, count: 4, usage: { output: 4 } });
  });

  it('continues a conversation in one process', async () => {
    const input = { said: ['My name is Ada.', 'I like maps.', 'What is my name?'] };
    const { result, seen } = await lab.client.call<{ texts: string[] }>(lab.demo, face.name, 'turns', input);
    expect(result.texts[2]).toBe('Your name is Ada.');
    expect(seen.map((answer) => answer['x-session'])).toEqual(['replay', 'live', 'live']);
  });

  it.each([...face.structured, ...face.objects])('gets a value with %s, after a repair', async (call) => {
    const { value } = await lab.client.ask(lab.command, face.name, call, { prompt: 'Who is she?' });
    expect(value).toEqual({ name: 'Ada', age: 36 });
  });

  describeLoops(lab, face.name, ['steps', 'stepsStream']);

  it('raises its error, also in the middle of an answer, which it does not request again', async () => {
    const { failure } = await lab.client.failure(lab.strict, face.name, 'ask', { key: 'no-such-key' });
    expect(failure).toMatchObject({ class: face.refusal, status: 401, code: 'unauthorized' });
    const input = { key: keys.all, prompt: 'begin overloaded', maxRetries: 2 };
    const cut = await lab.client.failure(lab.strict, face.name, 'stream', input);
    expect(cut.failure.message).toContain('it fails: overloaded');
    expect(cut.seen.map(({ status }) => status)).toEqual([200]);
    await recovers(lab.strict);
  });

  it('minds no advice and sends once more when the model has already run', async () => {
    const input = { key: keys.all, prompt: 'fail other', maxRetries: 1 };
    const { seen } = await lab.client.failure(lab.strict, face.name, 'ask', input);
    expect(seen.map((answer) => [answer.status, answer['x-should-retry']])).toEqual([
      [500, 'false'],
      [500, 'false'],
    ]);
  });
}
