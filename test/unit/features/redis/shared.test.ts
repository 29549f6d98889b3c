import { family, redisPlace } from '../../../../src/features/redis/shared.js';

const usual = {
  ...{ isSecure: false, host: 'localhost', port: 6379, username: null, password: null },
  ...{ database: 0, prefix: 'prompt-relay' },
};

describe('A store in Redis', () => {
  it.each([
    ['redis://localhost', usual],
    ['redis://localhost:6380/', { ...usual, port: 6380 }],
    ['rediss://[::1]/3?prefix=north', { ...usual, isSecure: true, host: '::1', database: 3, prefix: 'north' }],
    ['redis://:p%40ss@h', { ...usual, host: 'h', password: 'p@ss' }],
    ['redis://relay:secret@h', { ...usual, host: 'h', username: 'relay', password: 'secret' }],
  ])('is named by the URL %s', (text, place) => {
    expect(redisPlace(text)).toEqual(place);
  });

  it.each([
    ...['redis', 'redis:', 'redis://', 'redis://h:0', 'redis://h:99999', 'redis://h/x', 'redis://h/1/2', 'redis://h#x'],
    ...['redis://h?prefix=', 'redis://h?prefix=a:b', 'redis://h?name=x', 'redis://:%@h', 'http://h', ' redis://h'],
  ])('is not named by %j', (text) => {
    expect([redisPlace(text), family.parsePlace(text)]).toEqual([null, null]);
  });

  it.each([
    ['rediss://relay:secret@[::1]/3?prefix=north', 'rediss://[::1]:6379/3?prefix=north', 'secret'],
    ['redis://h', 'redis://h:6379/0?prefix=prompt-relay', null],
  ])('is shown without its user and its password: %s', (text, shown, password) => {
    expect(family.parsePlace(text)).toEqual({ shown, password });
  });
});
