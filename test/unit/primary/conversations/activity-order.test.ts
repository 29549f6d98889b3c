import { Conversation } from '../../../../src/primary/conversations/conversation.js';
import { ActivityOrder } from '../../../../src/primary/conversations/conversation-shares.js';
import { randomNumbers } from '../../../support/basics/random.js';

function conversationAt(activity: number): Conversation {
  const conversation = new Conversation(`c${activity}`, 'key alice', null, 0, 0);
  conversation.activity = activity;
  return conversation;
}

/** Creates an order of this many members, numbered from 1, and a plain list of them. */
function createOrder(count: number) {
  const order = new ActivityOrder();
  const list = Array.from({ length: count }, (_, index) => conversationAt(index + 1));
  for (const conversation of list) order.append(conversation);
  return { order, list };
}

const activities = (conversations: Iterable<Conversation>) => [...conversations].map(({ activity }) => activity);

it.each([0, 1, 255, 256, 257, 2000])('The order of %d conversations can be read from both ends', (count) => {
  const { order, list } = createOrder(count);
  expect(activities(order)).toEqual(activities(list));
  expect(activities(order.backwards(Infinity))).toEqual(activities(list.toReversed()));
});

it('The order can be read from any position on, including an unused one', () => {
  const { order } = createOrder(600);
  for (const before of [0, 1, 2, 255, 256, 257, 258, 512, 513, 600, 601, 10_000]) {
    const expected = Array.from({ length: Math.max(0, Math.min(before - 1, 600)) }, (_, index) => index + 1);
    expect(activities(order.backwards(before))).toEqual(expected.toReversed());
  }
});

it('The order stays correct however conversations move and leave', () => {
  const random = randomNumbers(7);
  const { order, list } = createOrder(3000);
  let last = 3000;
  for (let step = 0; step < 20_000; step++) {
    const at = Math.floor(random() * list.length);
    const [moved] = list.splice(at, 1);
    if (moved === undefined) break;
    order.removeConversation(moved);
    if (random() < 0.8) {
      moved.activity = ++last;
      order.append(moved);
      list.push(moved);
    }
    if (step % 1000 !== 0) continue;
    const before = Math.floor(random() * last);
    expect(activities(order)).toEqual(activities(list));
    expect(activities(order.backwards(before))).toEqual(
      activities(list.toReversed()).filter((other) => other < before),
    );
  }
});
