import type { Texts } from '../../language/texts.ts';
import type { inputTexts } from './input-texts.ts';

export const inputTextsZh: Texts<typeof inputTexts> = {
  pod_type: 'Pod 类型',
  input_token_length: '提示词 Token 数',
  prefix_cache_score: '提示词在前缀缓存中的比例',
  num_request_waiting: '等待中的请求',
  num_request_running: '运行中的请求',
  kv_cache_usage: 'KV 缓存使用率',
  inflight_tokens: '在途 Token 数',
  hbm_utilization: '加速器显存使用率',
  ai_core_utilization: '计算核心使用率',
  bandwidth_utilization: '显存带宽使用率',
  server_ip: '服务器',
};
