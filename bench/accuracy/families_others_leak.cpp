// Leaking families by other hands: written from public reports of leaks, by somebody who had not read the judge. Each
// names what it was drawn from.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "families.hpp"
#include "families_tables.hpp"
#include "stage.hpp"

namespace vramtrack::accuracy {
namespace {

/// A program that leaks all of what is free within `life_s`, from `onset_s` on.
struct Scene {
  Stage stage;
  double life_s = 0;
  double onset_s = 0;
};

Scene scene_of(Draw& draw, const char* command) {
  Scene s;
  s.life_s = draw.log_uniform(3600, draw.by_split(18.0, 28.0) * 3600);
  const double wait_s = draw.chance(0.5) ? 0 : draw.log_uniform(600, 3 * 3600.0);
  s.stage = roomy_stage(draw, wait_s + 1.4 * s.life_s, true, 0.25);
  s.stage.command = command;
  s.onset_s = std::max(wait_s, s.stage.load_s);
  return s;
}

void finish(Draw& draw, Trace& trace, const Scene& s, Pattern pattern, Pattern also,
            std::optional<double> rate = std::nullopt) {
  trace.capacity_bytes = s.stage.capacity_bytes;
  trace.label = {true, pattern, also, s.onset_s, rate, kVictim, s.life_s};
  trace.toml = write_scenario(draw, s.stage, trace.seed, trace.family);
}

void add_batches(Draw& draw, Stage& stage, double share) {
  stage.shape("sawtooth", fmt::format("amplitude_bytes = {:.0f}\nperiod_s = {:.1f}\nperiod_spread = 0.2\n"
                                      "amplitude_spread = 0.2",
                                      stage.free_bytes * share, draw.log_uniform(2, 60)));
}

void leak_steps(Scene& s, double bytes, double steps, const char* intervals, double spread) {
  s.stage.shape("staircase", fmt::format("step_bytes = {:.0f}\nevery_s = {:.1f}\nintervals = \"{}\"\nstep_spread = "
                                         "{:.2f}\nonset_s = {:.0f}",
                                         bytes / steps, s.life_s / steps, intervals, spread, s.onset_s));
}

/// Part of the life in which it leaks: stretches of `on_s` of every `cycle_s`.
void leak_in_stretches(Scene& s, double bytes, double cycle_s, double on_share) {
  const double rate = bytes / (s.life_s * on_share);
  for (double t = 0; t < 1.4 * s.life_s; t += cycle_s)
    s.stage.shape("linear", fmt::format("rate_bytes_per_s = {:.1f}\nonset_s = {:.0f}\nuntil_s = {:.0f}", rate,
                                        s.onset_s + t, s.onset_s + t + cycle_s * on_share));
}

/// Clients that connect, stream and go; what was made for a connection stays (triton-inference-server#7586).
void reconnections(Draw& draw, Trace& trace) {
  Scene s = scene_of(draw, "tritonserver --model-repository models");
  const double times = draw.log_uniform(12, draw.by_split(70.0, 120.0));
  const double swing = s.stage.free_bytes * draw.uniform(0.05, 0.25);
  s.stage.shape("sawtooth", fmt::format("amplitude_bytes = {:.0f}\nperiod_s = {:.0f}\nperiod_spread = 0.3\n"
                                        "form = \"square\"",
                                        swing, s.life_s / times));
  leak_steps(s, s.stage.free_bytes - swing, times, "jittered", 0.3);
  finish(draw, trace, s, Pattern::step_increase, times > 24 ? Pattern::gradual_leak : Pattern::cyclic);
}

/// Every image made with a LoRA keeps something; nobody makes images all the time
/// (stable-diffusion-webui-forge#500).
void image_sessions_leak(Draw& draw, Trace& trace) {
  Scene s = scene_of(draw, "python launch.py --listen");
  const double swing = s.stage.free_bytes * draw.uniform(0.05, 0.25);
  s.stage.shape("sawtooth", fmt::format("amplitude_bytes = {:.0f}\nperiod_s = {:.0f}\nperiod_spread = 0.3\n"
                                        "form = \"square\"",
                                        swing, draw.uniform(8, 90)));
  leak_in_stretches(s, s.stage.free_bytes - swing, s.life_s / draw.uniform(4, 12), draw.uniform(0.3, 0.8));
  finish(draw, trace, s, Pattern::gradual_leak, Pattern::step_increase);
}

/// The card is given to the KV cache; what is left for images of requests shrinks by a tenth of a gigabyte at a time
/// (vllm-ascend#5262).
void little_left(Draw& draw, Trace& trace) {
  Scene s = scene_of(draw, "vllm serve --model qwen-vl");
  const double cache = s.stage.free_bytes * draw.uniform(0.7, 0.88);
  s.stage.shape("constant", fmt::format("bytes = {:.0f}\nonset_s = {:.0f}", cache, s.stage.load_s));
  s.onset_s = std::max(s.onset_s, s.stage.load_s + 60);
  const double left = s.stage.free_bytes - cache;
  const double rate = left / s.life_s;
  s.stage.shape("requests", fmt::format("requests_per_s = {:.6f}\nleak_bytes = {:.0f}\nsizes = \"fixed\"\nonset_s = "
                                        "{:.0f}",
                                        rate / (0.1 * kGiB), 0.1 * kGiB, s.onset_s));
  finish(draw, trace, s, Pattern::gradual_leak, Pattern::step_increase, rate);
}

/// `losses.append(loss)` keeps each step's graph; validation does not (PyTorch's FAQ, "My model reports out of
/// memory").
void kept_graphs(Draw& draw, Trace& trace) {
  Scene s = scene_of(draw, "python train_unet.py");
  const double epoch_s = s.life_s / draw.uniform(5, 30);
  const double swing = s.stage.free_bytes * draw.uniform(0.03, 0.15);
  s.stage.shape("evaluation",
                fmt::format("bytes = {:.0f}\nevery_s = {:.0f}\nlasts_s = {:.0f}", swing, epoch_s, 0.2 * epoch_s));
  leak_in_stretches(s, s.stage.free_bytes - swing, epoch_s, 0.8);
  finish(draw, trace, s, Pattern::gradual_leak, Pattern::cyclic);
}

/// A copy of the weights for every "best model so far", and none is let go.
void best_models(Draw& draw, Trace& trace) {
  Scene s = scene_of(draw, "python finetune.py --keep-best");
  const double copies = draw.whole(7, draw.by_split(20, 30));
  add_batches(draw, s.stage, 0.04);
  leak_steps(s, 0.96 * s.stage.free_bytes, copies, draw.pick({"jittered", "random"}), 0);
  finish(draw, trace, s, Pattern::step_increase, Pattern::cyclic);
}

/// A cell is run again and again, and the last traceback holds the model of each run.
void cell_run_again(Draw& draw, Trace& trace) {
  Scene s = scene_of(draw, "python -m ipykernel_launcher");
  const double runs = draw.whole(5, 9);
  const double swing = s.stage.free_bytes * draw.uniform(0.05, 0.15);
  s.stage.shape("sawtooth", fmt::format("amplitude_bytes = {:.0f}\nperiod_s = {:.0f}\nperiod_spread = 0.4\n"
                                        "form = \"square\"\nduty = 0.7",
                                        swing, s.life_s / runs));
  leak_steps(s, s.stage.free_bytes - swing, runs, "random", 0.4);
  finish(draw, trace, s, Pattern::step_increase, Pattern::cyclic);
}

/// A decoder's context for every video that is opened (decord#27), beside streams that come and go.
void decoder_contexts(Draw& draw, Trace& trace) {
  Scene s = scene_of(draw, "python index_videos.py");
  const double stays_s = draw.log_uniform(60, 1200);
  const double streams = s.stage.free_bytes * draw.uniform(0.1, 0.3);
  s.stage.shape("serving", fmt::format("request_bytes = {:.0f}\nrequests_per_s = {:.6f}\nservice_s = {:.0f}\n"
                                       "max_requests = 12",
                                       streams / 12, draw.uniform(3, 6) / stays_s, stays_s));
  const double rate = (s.stage.free_bytes - streams) / s.life_s;
  const double context = draw.pick({2.0, 10.0, 22.0, 52.0}) * kMiB;
  s.stage.shape("requests", fmt::format("requests_per_s = {:.6f}\nleak_bytes = {:.0f}\nsizes = \"fixed\"\nonset_s = "
                                        "{:.0f}",
                                        rate / context, context, s.onset_s));
  finish(draw, trace, s, Pattern::gradual_leak, Pattern::cyclic, rate);
}

/// Two megabytes with every batch (sentle#18), under what a batch itself takes.
void two_megabytes(Draw& draw, Trace& trace) {
  Scene s = scene_of(draw, "python detect_clouds.py");
  const double swing = s.stage.free_bytes * draw.uniform(0.05, 0.25);
  s.stage.shape("sawtooth", fmt::format("amplitude_bytes = {:.0f}\nperiod_s = {:.1f}\nperiod_spread = 0.3\n"
                                        "form = \"square\"",
                                        swing, draw.log_uniform(2, 120)));
  const double left = s.stage.free_bytes - swing;
  leak_steps(s, left, left / (2 * kMiB), "jittered", 0);
  finish(draw, trace, s, Pattern::gradual_leak, Pattern::cyclic, left / s.life_s);
}

/// Blocks that no later batch fits into: the cache grows forever, more and more slowly (dorado#1358, pytorch#27479).
void unusable_blocks(Draw& draw, Trace& trace) {
  Scene s = scene_of(draw, "dorado basecaller sup pod5s");
  const double kept = s.stage.free_bytes * draw.uniform(0.05, 0.15);
  s.stage.shape("running_max", fmt::format("typical_bytes = {:.0f}\nevery_s = {:.1f}\nsigma = 0.3\nmax_bytes = {:.0f}",
                                           0.3 * kept, draw.log_uniform(2, 30), kept));
  s.stage.shape("accelerating", fmt::format("bytes = {:.0f}\nover_s = {:.0f}\npower = {:.2f}\nonset_s = {:.0f}",
                                            s.stage.free_bytes - kept, s.life_s, draw.uniform(0.7, 0.95), s.onset_s));
  finish(draw, trace, s, Pattern::gradual_leak, Pattern::none);
}

/// "The increase is not constant but happens at once after an arbitrary number of epochs" (PyTorch-RL#2).
void odd_epochs(Draw& draw, Trace& trace) {
  Scene s = scene_of(draw, "python gail_gym.py");
  const double steps = draw.whole(10, 25);
  const double swing = s.stage.free_bytes * draw.uniform(0.05, 0.2);
  const double epoch_s = s.life_s / draw.uniform(30, 160);
  s.stage.shape("evaluation", fmt::format("bytes = {:.0f}\nevery_s = {:.0f}\nlasts_s = {:.0f}\nspread = 0.2", swing,
                                          epoch_s, epoch_s * draw.uniform(0.1, 0.5)));
  leak_steps(s, s.stage.free_bytes - 1.2 * swing, steps, "random", 0.5);
  finish(draw, trace, s, Pattern::step_increase, Pattern::cyclic);
}

/// Some of the chats are never closed; their KV entries stay.
void open_chats(Draw& draw, Trace& trace) {
  Scene s = scene_of(draw, "python chat_server.py");
  const double stays_s = draw.log_uniform(30, 600);
  const double chats = s.stage.free_bytes * draw.uniform(0.15, 0.35);
  const double arrivals = draw.uniform(4, 9) / stays_s;
  s.stage.shape("serving", fmt::format("request_bytes = {:.0f}\nrequests_per_s = {:.6f}\nservice_s = {:.0f}\n"
                                       "max_requests = 16\nburst_every_s = 3600\nburst_lasts_s = 300\nburst_factor = 3",
                                       chats / 16, arrivals, stays_s));
  const double rate = (s.stage.free_bytes - chats) / s.life_s;
  const double chat = chats / 16 * draw.uniform(0.3, 1);
  s.stage.shape("requests", fmt::format("requests_per_s = {:.6f}\nleak_share = {:.4f}\nleak_bytes = {:.0f}\nonset_s = "
                                        "{:.0f}",
                                        arrivals, std::min(rate / (arrivals * chat), 1.0),
                                        std::max(chat, rate / arrivals), s.onset_s));
  finish(draw, trace, s, Pattern::gradual_leak, Pattern::cyclic, rate);
}

/// A game's levels: textures of the last one go, but not all of them.
void level_textures(Draw& draw, Trace& trace) {
  Scene s = scene_of(draw, "./game -headless -stream");
  const double levels = draw.uniform(12, draw.by_split(40.0, 60.0));
  const double level = s.stage.free_bytes * draw.uniform(0.15, 0.35);
  s.stage.shape("sawtooth", fmt::format("amplitude_bytes = {:.0f}\nperiod_s = {:.0f}\nperiod_spread = 0.2\n"
                                        "amplitude_spread = 0.3\nform = \"square\"\nduty = 0.9",
                                        level, s.life_s / levels));
  leak_steps(s, s.stage.free_bytes - 1.3 * level, levels, "jittered", 0.5);
  finish(draw, trace, s, Pattern::step_increase, levels > 24 ? Pattern::gradual_leak : Pattern::cyclic);
}

/// The model that was there before the switch is still referenced (stable-diffusion-webui#11632, #5065).
void model_switches(Draw& draw, Trace& trace) {
  Scene s = scene_of(draw, "python webui.py --api");
  const double switches = draw.whole(6, 14);
  const double model = s.stage.free_bytes * draw.uniform(0.08, 0.15);
  s.onset_s = 0;
  s.stage.shape("lora",
                fmt::format("adapter_bytes = {:.0f}\nslots = 1\nspread = 0.2\nevery_s = {:.0f}\noverlap_s = 20\n"
                            "leak_bytes = {:.0f}",
                            model, s.life_s / switches, (s.stage.free_bytes - 2 * model) / switches));
  finish(draw, trace, s, Pattern::step_increase, Pattern::cyclic);
}

}  // namespace

std::span<const Family> other_leaking_families() {
  static constexpr std::array kFamilies{
      Family{"reconnections", "something stays of every client", true, false, reconnections, Group::others},
      Family{"image_sessions_leak", "leaks while somebody makes images", true, false, image_sessions_leak,
             Group::others},
      Family{"little_left", "the KV cache leaves little, and that goes", true, false, little_left, Group::others},
      Family{"kept_graphs", "in training, not in validation", true, false, kept_graphs, Group::others},
      Family{"best_models", "a copy of every best model", true, false, best_models, Group::others},
      Family{"cell_run_again", "five to nine runs of a cell", true, false, cell_run_again, Group::others},
      Family{"decoder_contexts", "a context of every video", true, false, decoder_contexts, Group::others},
      Family{"two_megabytes", "two with every batch", true, false, two_megabytes, Group::others},
      Family{"unusable_blocks", "ever more slowly, to the end", true, false, unusable_blocks, Group::others},
      Family{"odd_epochs", "at once, after any number of epochs", true, false, odd_epochs, Group::others},
      Family{"open_chats", "some are never closed", true, false, open_chats, Group::others},
      Family{"level_textures", "not all textures go with their level", true, false, level_textures, Group::others},
      Family{"model_switches", "the model before is still referenced", true, false, model_switches, Group::others},
  };
  return kFamilies;
}

}  // namespace vramtrack::accuracy
