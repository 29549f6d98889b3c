import type { WrittenSections } from '../../../../src/features/live-status/shared.js';
import { StatusFeed } from '../../../../src/features/live-status/status-feed.js';
import type { Sections } from '../../../../src/shared/api/status.js';
import { cancelled } from '../../../../src/shared/errors.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { settled } from '../../../support/basics/settled.js';

/** A feed of three sections that change on demand, and the events of its subscribers. */
class FeedHarness {
  readonly clock = new FakeClock();
  readonly state = { slots: 1, queue: 1, last_hour: 1 };
  looks = 0;
  isBroken = false;
  readonly feed = new StatusFeed(this.#sections() as unknown as Sections, this.clock);

  #sections() {
    return {
      slots: () => {
        if (this.isBroken) throw new Error('broken');
        this.looks++;
        return this.state.slots;
      },
      queue: () => this.state.queue,
      last_hour: () => this.state.last_hour,
    };
  }

  /** Subscribes, and reads all events. */
  subscribe() {
    const controller = new AbortController();
    const told: WrittenSections[] = [];
    const reader = this.feed.watch(controller.signal);
    const ended = (async () => {
      for await (const sections of reader) told.push(sections);
    })().catch((error: Error) => error.message);
    return { told, ended, leave: () => controller.abort(cancelled('left')) };
  }
}

const whole = { slots: '1', queue: '1', last_hour: '1' };

describe('The status feed', () => {
  it('sends everything at once, and then only changes', async () => {
    const harness = new FeedHarness();
    const { told } = harness.subscribe();
    await settled();
    expect(told).toEqual([whole]);
    await harness.clock.advance(5000);
    expect(told).toHaveLength(1);
    harness.state.queue = 2;
    await harness.clock.advance(500);
    expect(told.slice(1)).toEqual([{ queue: '2' }]);
  });

  it('sends the changes of half a second together, without those that were reverted', async () => {
    const harness = new FeedHarness();
    const { told } = harness.subscribe();
    await settled();
    harness.state.slots = 2;
    await harness.clock.advance(200);
    harness.state.queue = 2;
    await harness.clock.advance(200);
    harness.state.slots = 1;
    await harness.clock.advance(1000);
    expect(told.slice(1)).toEqual([{ queue: '2' }]);
  });

  it('sends the last hour at most every five seconds', async () => {
    const harness = new FeedHarness();
    const { told } = harness.subscribe();
    for (let half = 0; half < 22; half++) {
      harness.state.last_hour++;
      await harness.clock.advance(500);
    }
    expect(told.slice(1)).toHaveLength(2);
  });

  it('polls twice a second, however many clients subscribe, and never while none does', async () => {
    const harness = new FeedHarness();
    await harness.clock.advance(5000);
    expect([harness.looks, harness.clock.pending]).toEqual([0, 0]);
    const subscribers = [harness.subscribe(), harness.subscribe(), harness.subscribe()];
    await harness.clock.advance(5000);
    expect(harness.looks).toBe(11);
    for (const { leave } of subscribers) leave();
    expect(await Promise.all(subscribers.map(({ ended }) => ended))).toEqual(['left', 'left', 'left']);
    expect(harness.clock.pending).toBe(0);
  });

  it('polls no more often if subscribers come and go', async () => {
    const harness = new FeedHarness();
    for (let count = 0; count < 20; count++) {
      const { told, ended, leave } = harness.subscribe();
      await settled();
      expect(told).toHaveLength(1);
      leave();
      await ended;
    }
    expect(harness.looks).toBe(1);
  });

  it('sends a busy reader only the latest of each section', async () => {
    const harness = new FeedHarness();
    const reader = harness.feed.watch(new AbortController().signal);
    await reader.next();
    for (const count of [2, 3]) {
      harness.state.slots = count;
      await harness.clock.advance(500);
    }
    harness.state.queue = 9;
    await harness.clock.advance(500);
    expect((await reader.next()).value).toEqual({ slots: '3', queue: '9' });
    await reader.return(undefined);
    expect(harness.clock.pending).toBe(0);
  });

  it('ends for its subscribers if a section cannot be composed, and works for later ones', async () => {
    const harness = new FeedHarness();
    const { ended } = harness.subscribe();
    await settled();
    harness.isBroken = true;
    await harness.clock.advance(500);
    expect(await ended).toBe('broken');
    expect(harness.clock.pending).toBe(0);
    harness.isBroken = false;
    await harness.clock.advance(500);
    const { told } = harness.subscribe();
    await settled();
    expect(told).toEqual([whole]);
  });
});
