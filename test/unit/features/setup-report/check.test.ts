import { askForTrial, trialQuestion } from '../../../../src/features/setup-report/check.js';
import { type Turn, unknownUsage } from '../../../../src/primary/cli/contract/adapter.js';
import type { ModelCli } from '../../../../src/primary/cli/model-cli.js';
import type { TurnSink } from '../../../../src/primary/cli/process/open-turn.js';
import { cliError } from '../../../../src/shared/errors.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { textDelta } from '../../../support/jobs/answer-events.js';

type Answering = (turn: Turn, sink: TurnSink, signal: AbortSignal) => Promise<void>;

/** Creates a model CLI whose turns end as `answering` says. */
function house(answering: Answering) {
  const clock = new FakeClock();
  const released: unknown[] = [];
  const cli = {
    publicName: (model: string | null) => model,
    acquire: async () => ({
      turn: async (turn: Turn, sink: TurnSink, signal: AbortSignal) => {
        await answering(turn, sink, signal);
        return { type: 'turn-end', text: null, model: null, usage: unknownUsage };
      },
      release: async (kept: unknown) => void released.push(kept),
    }),
  } as unknown as ModelCli;
  return { clock, released, ask: () => askForTrial({ cli, adapterModel: 'big', label: 'big' }, 1000, clock) };
}

describe('The test question of a check', () => {
  it('is answered by the default model, with its times', async () => {
    const { clock, released, ask } = house(async (turn, sink) => {
      expect(turn).toMatchObject({ text: trialQuestion, model: 'big', system: null, history: [] });
      await clock.advance(300);
      sink.write(textDelta('Hel'));
      await clock.advance(100);
      sink.write(textDelta('lo.'));
    });
    const figures = { first_delta_ms: 300, deltas: 2, duration_ms: 400 };
    expect(await ask()).toEqual({ question: trialQuestion, answer: 'Hello.', model: 'big', ...figures, error: null });
    expect(released).toEqual([null]);
  });

  it('fails with its class, its message and the stderr of the program', async () => {
    const { released, ask } = house(() => Promise.reject(cliError('crashed', 'it crashed', { stderr: 'no model' })));
    expect(await ask()).toMatchObject({
      answer: null,
      first_delta_ms: null,
      error: 'cli_error (crashed): it crashed: no model',
    });
    expect(released).toEqual([null]);
  });

  it('fails after the time limit of a job', async () => {
    const { clock, ask } = house((_, __, signal) => {
      const aborted = new Promise<void>((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason));
      });
      void clock.advance(1000);
      return aborted;
    });
    expect(await ask()).toMatchObject({ error: expect.stringMatching(/^timeout: .* 1000 ms/) });
  });
});
