import type { Texts } from '../../language/texts.ts';
import type { whatIfTexts } from './what-if-texts.ts';

const MEANINGS: Readonly<Record<string, string>> = {
  input_id: '由调用方选择，随结果返回',
  pod_type: '服务器的角色：空或 aggregate、prefill、decode，或自定义名称',
  input_token_length: '提示词长度',
  prefix_cache_score: '提示词已在服务器前缀缓存中的比例',
  num_request_waiting: '服务器队列中的请求数',
  num_request_running: '服务器批次中的请求数',
  kv_cache_usage: 'KV 缓存使用率',
  inflight_tokens: '已发送到服务器且未完成的请求的 Token 数，含提示词和输出',
  hbm_utilization: '加速器显存使用率',
  ai_core_utilization: '计算核心忙碌时间的比例',
  bandwidth_utilization: '显存带宽使用率',
  server_ip: '服务器地址，随结果返回',
};

export const whatIfTextsZh: Texts<typeof whatIfTexts> = {
  title: '模拟预测',
  link: '模拟预测：给定请求和负载',
  lead: '由本进程当前提供预测的模型，对给定负载的服务器上的请求预测延迟。不记录任何内容。留空的数字视为 0。',
  meaning: (name, english) => MEANINGS[name] ?? english,
  hint: (meaning, range) => `${meaning}。${range}`,
  statisticNames: { mean: '均值' },
  text: '最多 256 字节。',
  count: '0 到 2,147,483,647 之间的整数。',
  number: '不小于 0 的数。',
  submit: '预测',
  answer: (id) => `由 ${id} 预测`,
  predicted: (target, ms, statistic) => `${target}：${ms} ms（${statistic}）`,
  statistics: (target) => `${target}：均值和分位数`,
  statistic: '统计量',
  milliseconds: 'ms',
  madeOf: (target) => `${target} 的构成`,
  part: '组成部分',
  effect: '影响',
  server: '训练时的服务器偏移',
  since: '此后的上报，以及统计量',
  result: '预测值',
  prior: '先验模型',
};
