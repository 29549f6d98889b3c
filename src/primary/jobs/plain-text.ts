import type { Turn } from '../cli/contract/adapter.js';
import type { AnswerTurns, RunTurn, StrategyEnd } from './answer-turns.js';
import { StopCutter } from './stop-cutter.js';

/** Answers with the text of the model as it arrives, up to a stop sequence, and with its calls. */
export async function answerWithText({ job, output }: AnswerTurns, turn: Turn, run: RunTurn): Promise<StrategyEnd> {
  const { stop } = job.request;
  const cutter = new StopCutter(stop);
  const flush = () => output.sendText(cutter.takeBuffered());
  const end = await run(turn, {
    write: (text) => output.sendText(cutter.add(text)),
    call: (event) => {
      flush();
      output.sendCall(event);
    },
    hasEnough: () => cutter.found !== null,
    flush,
    beforeThought: flush,
  });
  const isWaiting = (end.calls ?? []).length > 0;
  const ended = ({ found }: StopCutter, text: string | null) => {
    const isCut = found !== null || end.isRepaired === true;
    return { ...end, text, stopSequence: found ?? end.stopSequence ?? null, isCut, isWaiting };
  };
  if (end.text === null) {
    flush();
    return ended(cutter, null);
  }
  const whole = new StopCutter(stop);
  const text = output.correctText(whole.add(end.text) + whole.takeBuffered());
  output.sendMissingCalls(end.calls ?? []);
  return ended(whole, text);
}
