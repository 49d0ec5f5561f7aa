/** Translates the error messages about models into Chinese. */
import type { Phrase } from '../../language/explain.ts';

export const MODEL_PHRASES_ZH: readonly Phrase[] = [
  [
    'Cannot find the capacity: ttft_ms, tpot_ms or both must give a limit',
    '无法计算容量：ttft_ms 和 tpot_ms 至少填写一个上限。',
  ],
  ['Cannot find the capacity: no version of the model "{}" is served', '无法计算容量：模型“{1}”没有上线的版本。'],
  ['Cannot find the capacity: another one is being found', '正在计算另一个容量，请几秒后重试。'],
  [
    'Cannot find the capacity: there are {} samples of the pod type "{}", and at least {} are needed; other pod types are {}',
    '无法计算容量：Pod 类型“{2}”只有 {1} 个样本，至少需要 {3} 个；其他 Pod 类型有 {4}。',
  ],
  [
    'Cannot find the capacity: there are {} samples of the pod type "{}", and at least {} are needed',
    '无法计算容量：Pod 类型“{2}”只有 {1} 个样本，至少需要 {3} 个。',
  ],
  [
    'Cannot find the capacity: no sample is of the server "{}"; known are {}',
    '无法计算容量：没有服务器“{1}”的样本；已知服务器有 {2}。',
  ],
  ['Cannot find the capacity: the server "{}" must be named once', '无法计算容量：服务器“{1}”只能写一次。'],
  [
    'Cannot find the capacity: the server "{}" needs at least {} samples with {}, and has {}; name the servers that have enough, or report more requests',
    '无法计算容量：服务器“{1}”至少需要 {2} 个含 {3} 的样本，现有 {4} 个；请只写样本足够的服务器，或上报更多请求。',
  ],
  [
    'Cannot find the capacity: output_tokens must be given, since no sample has the length of its answer',
    '无法计算容量：必须填写 output_tokens，因为样本中没有输出长度。',
  ],
  [
    'Cannot find the capacity: too few samples of the server "{}" show how long a prompt takes, since requests of no sample wait before it; report all requests',
    '无法计算容量：服务器“{1}”的样本中，能看出单个提示词耗时的太少，因为之前还有样本之外的请求在等待；请上报所有请求。',
  ],
  [
    'Cannot find the capacity: it took longer than {} s; name fewer servers',
    '无法计算容量：超过了 {1} 秒；请减少服务器。',
  ],
  [
    'Cannot find the capacity: answers of so many tokens take so long that the servers are busy at every rate; output_tokens must be smaller',
    '无法计算容量：输出太长，任何速率下服务器都忙不过来；请减小 output_tokens。',
  ],
  [
    'Cannot find the capacity: the prompts of the samples have no tokens to be scaled',
    '无法计算容量：样本的提示词长度为 0，无法按比例换算。',
  ],
  [
    'Cannot find the capacity: {} servers with so many requests under way take too long to simulate; name fewer servers',
    '无法计算容量：{1} 台服务器的在途请求太多，模拟耗时过长；请减少服务器。',
  ],
  ['Cannot find the capacity: servers must be at most {}', '无法计算容量：最多 {1} 台服务器。'],
  [
    'Cannot find the capacity: the limits hold at most below the loads that the samples show (server "{}" hardly ever had fewer than {} requests under way); observe the servers at lower rates too',
    '无法计算容量：这些上限最多在低于样本负载时成立（服务器“{1}”的在途请求几乎从未少于 {2} 个）；请在更低的速率下也进行观测。',
  ],
  [
    'Cannot find the capacity: almost no request at the server "{}" found another one there (num_request_waiting + num_request_running is 0); observe the servers at higher rates too',
    '无法计算容量：服务器“{1}”上几乎没有请求遇到其他请求（num_request_waiting + num_request_running 为 0）；请在更高的速率下也进行观测。',
  ],
  ['Cannot find the model "{}"', '没有模型“{1}”。'],
  ['Cannot find version {} of the model "{}"', '模型“{2}”没有版本 {1}。'],
  [
    'Cannot roll back "{}": no other version was served before this one',
    '无法回滚“{1}”：在此版本之前没有其他版本上线过。',
  ],
  [
    'Cannot promote the new version of "{}": another one was promoted meanwhile',
    '无法上线“{1}”的新版本：期间已上线另一个版本。',
  ],
  ['Cannot roll back "{}": it would lead to version {} by now', '无法回滚“{1}”：现在将回到版本 {2}。'],
  ['Cannot roll back "{}": there is no such model', '无法回滚“{1}”：没有这个模型。'],
  ['better on the newest rows', '在最新数据上更好'],
  ['trained from files', '由文件训练'],
];
