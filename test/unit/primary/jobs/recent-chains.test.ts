import { RecentChains } from '../../../../src/primary/jobs/job-chain.js';
import type { ClientText } from '../../../../src/shared/client.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';

/** Requests with their answers, and the time between them. */
class Desk {
  readonly clock = new FakeClock();
  readonly recent = new RecentChains(this.clock);
  #answers = 0;

  arrive(client: ClientText = 'key ada') {
    return this.recent.arrive(client);
  }

  /** Answers a request. Returns whether it came while another one was open. */
  answer(arrival: ReturnType<Desk['arrive']>): boolean {
    const isSideRequest = this.recent.isSideRequest(arrival);
    this.recent.answered(arrival, `place ${++this.#answers}`);
    this.recent.leave(arrival);
    return isSideRequest;
  }
}

describe('A request of a caller that stores its conversation', () => {
  it('is no side request if it is alone', async () => {
    const desk = new Desk();
    for (let question = 1; question <= 3; question++) {
      const arrival = desk.arrive();
      await desk.clock.advance(3000);
      expect(desk.answer(arrival)).toBe(false);
      await desk.clock.advance(1001);
    }
  });

  it('is a side request if it arrives just after another answer, as is each one after it', async () => {
    const desk = new Desk();
    const first = desk.arrive();
    expect(desk.answer(first)).toBe(false);
    for (let side = 1; side <= 4; side++) {
      await desk.clock.advance(50);
      const arrival = desk.arrive();
      await desk.clock.advance(2000);
      expect(desk.answer(arrival)).toBe(true);
    }
  });

  it('is a side request if a longer request arrives just after it, and that one is not', async () => {
    const desk = new Desk();
    const title = desk.arrive();
    await desk.clock.advance(1700);
    const question = desk.arrive();
    await desk.clock.advance(2000);
    expect([desk.answer(title), desk.answer(question)]).toEqual([true, false]);
  });

  it('is no side request if the other one arrived long before, or from another client', async () => {
    const desk = new Desk();
    const [long, other] = [desk.arrive(), desk.arrive('key bob')];
    await desk.clock.advance(2501);
    const arrival = desk.arrive();
    expect(desk.answer(other)).toBe(false);
    expect(desk.answer(arrival)).toBe(false);
    expect(desk.answer(long)).toBe(false);
  });

  it('is no side request if the other one failed, as it may be a retry', () => {
    const desk = new Desk();
    desk.recent.leave(desk.arrive());
    expect(desk.answer(desk.arrive())).toBe(false);
  });
});

it('The state of an answered conversation is remembered until four thousand others have been answered', () => {
  const { recent } = new Desk();
  expect(recent.knows('here')).toBe(false);
  recent.answered(recent.arrive('key ada'), 'here');
  for (let index = 1; index < 4096; index++) recent.answered(recent.arrive(`user ${index}`), `place ${index}`);
  expect(recent.knows('here')).toBe(true);
  recent.answered(recent.arrive('key bob'), 'here');
  recent.answered(recent.arrive('key bob'), 'there');
  expect([recent.knows('here'), recent.knows('place 1'), recent.knows('place 2')]).toEqual([true, false, true]);
});
