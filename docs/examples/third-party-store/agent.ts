/** An agent on that store: started again, it goes on from the file of its run. */
import { createAgent } from '@lousho/core';
import { mockModel } from '@lousho/testing';
import { jsonFiles } from './json-files.ts';

const store = jsonFiles('./runs');
const provider = mockModel(['Noted: milk.', 'Noted: bread.'], { answerBy: 'step' });
const agent = createAgent({ name: 'shopping-list', provider, store });

console.log((await agent.send('We need milk.', { sessionId: 'list-1', inputId: 'milk' })).text);
console.log((await agent.send('And bread.', { sessionId: 'list-1', inputId: 'bread' })).text);
