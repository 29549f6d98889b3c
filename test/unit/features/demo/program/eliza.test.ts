import { Eliza } from '../../../../../src/features/demo/program/eliza.js';
import { processorMs } from '../../../../support/processes/processor-time.js';

/** Returns the answers of one conversation to these prompts. */
function answers(prompts: readonly string[], system?: string): readonly string[] {
  const eliza = new Eliza();
  if (system !== undefined) eliza.instruct(system);
  return prompts.map((prompt) => eliza.answer(prompt));
}

function lastAnswer(...prompts: readonly string[]): string | undefined {
  return answers(prompts).at(-1);
}

describe('The model eliza', () => {
  const introduction = 'I am Eliza, a demo: a small program with a few fixed rules, not a language model. ';

  it('introduces itself as a demo in its first answer only', () => {
    const [first, second] = answers(['I like tea.', 'I like tea.']);
    expect([first, second]).toEqual([`${introduction}Why do you like tea?`, 'Why do you like tea?']);
  });

  it.each(['Who are you?', 'what is your name', 'Are you a human?', 'are you ChatGPT?'])(
    'introduces itself again when asked: %s',
    (question) => expect(lastAnswer('Hello!', question)).toContain(introduction),
  );

  it('does not treat every question about itself as one about what it is', () => {
    expect(lastAnswer('Hello!', 'Are you hungry?')).not.toContain('I am Eliza');
  });

  it.each([
    ['You are a helpful assistant. Your name is Max.', /^I am Max, a demo: /],
    ['You are Bob.', /^I am Bob, a demo: /],
    ['You are a helpful assistant.', /^I am Eliza, a demo: /],
  ])('uses the name from the system text, and still introduces itself as a demo: %s', (text, expected) => {
    expect(answers(['Hello!'], text)[0]).toMatch(expected);
  });

  it.each([
    ['Hello, my name is Ada', 'Hello. Nice to meet you, Ada.'],
    ['Hello, I am Ada', 'Hello. Nice to meet you, Ada.'],
    ['hello', 'Hello. What is your name?'],
    ['My dog is called Rex and I feel tired.', 'I will remember that your dog is Rex. Why do you feel tired?'],
    ['I am sad because you are mean to me', 'What makes you think that I am mean to you?'],
    ['I think my dog knows me', 'Are you sure that your dog knows you?'],
  ])('answers "%s" as the documentation and the rules define', (prompt, reply) => {
    expect(lastAnswer(prompt)).toBe(introduction + reply);
  });

  it.each([
    ['My name is Ada.', 'What is my name?', 'Your name is Ada.'],
    ["Hello, I'm Ada Lovelace", 'who am I', 'Your name is Ada Lovelace.'],
    ['My favourite colour is green!', "What's my favorite color?", 'Your favorite color is green.'],
    ['my dog is called Rex and I live in Paris', "What is my dog's name?", 'Your dog is Rex.'],
    ['My lucky number is 7', 'Tell me my lucky number', 'Your lucky number is 7.'],
    ['Remember the number 42.', 'Which number did I ask you to remember?', 'You asked me to remember: the number 42.'],
    ['Please remember that I owe you 5', 'What did I ask you to remember?', 'You asked me to remember: you owe me 5.'],
    ['Remember the number 42.', 'What was the number?', 'You asked me to remember: the number 42.'],
    ['Remember that my name is Ada.', 'Do you remember my name?', 'Your name is Ada.'],
    ['My code is $1 $& $$.', 'Do you know what my code is?', 'Your code is $1 $& $$.'],
    ['My __proto__ is odd.', 'What is my __proto__?', 'Your __proto__ is odd.'],
  ])('remembers "%s" when asked "%s"', (told, question, answer) => {
    expect(lastAnswer(told, 'Well.', question)).toBe(answer);
  });

  it('believes the latest statement', () => {
    expect(lastAnswer('My name is Ada.', 'My name is Grace.', 'What is my name?')).toBe('Your name is Grace.');
  });

  it('does not invent facts', () => {
    const questions = ['What is my name?', 'What is my constructor?', 'Do you remember anything?'];
    expect(answers(['Hello!', ...questions]).slice(1)).toEqual([
      'You have not told me your name yet.',
      'You have not told me your constructor yet.',
      'You asked me to remember: nothing yet.',
    ]);
  });

  it('has a well-formed answer to any text', () => {
    const words = "my|name|is|I|am|what|1|+|(|?|. |\n|🦄|__proto__|$1|'|é| |\0|\u001b|remember".split('|');
    const prompts = Array.from({ length: 3000 }, (_, seed) => {
      const prompt = Array.from({ length: seed % 60 }, (_, at) => words[(seed * (at + 7) * (at + 3)) % words.length]);
      return prompt.join(seed % 2 === 0 ? ' ' : '');
    });
    const said = answers(prompts);
    expect(said.filter((answer) => answer === '' || Buffer.from(answer).toString() !== answer)).toEqual([]);
  });

  it.each([
    ...[' ', '!', '.', ',', 'my ', 'my is ', 'I am ', ' and', 'remember ', 'Hi ', 'A', 'what is ', '\n', '🦄'],
    'you are ',
  ])('handles a megabyte of %j quickly', (part) => {
    const text = part.repeat(1_000_000 / part.length);
    const from = processorMs();
    const [first] = answers([text], text);
    expect(processorMs() - from).toBeLessThan(1000);
    expect(first).toContain('a demo');
  });
});
