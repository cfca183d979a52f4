/** Language models of the AI SDK as providers of Lousho agents. */
export { fromAiSdk, type FromAiSdkOptions } from './from-ai-sdk.ts';
export { type AiSdkLanguageModel } from './language-model.ts';
