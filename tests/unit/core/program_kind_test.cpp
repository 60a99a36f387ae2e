// What kind of program a command is.
#include "core/program_kind.hpp"

#include <gtest/gtest.h>

namespace vramtrack {
namespace {

TEST(ProgramKind, IsToldByTheCommand) {
  struct Case {
    std::string_view command, name, kind;
    ProgramKind expected;
  };
  using enum ProgramKind;
  for (const Case& c : std::initializer_list<Case>{
           {"torchrun --nproc-per-node 8 pretrain_gpt.py", "torchrun", "C", training},
           {"/opt/conda/bin/python -u /home/ada/Train.py --lr 3e-4", "python", "C", training},
           {"python -m vllm.entrypoints.openai.api_server --model train.py", "python", "C", serving},
           {"vllm serve Qwen/Qwen3-8B", "vllm", "C", serving},
           {"vllm run-batch -i in.jsonl", "vllm", "C", batch},
           {"python /opt/ComfyUI/main.py --listen", "python", "C", serving},
           {"/usr/bin/ffmpeg -i a.mp4 b.mp4", "ffmpeg", "C", batch},
           {"lm_eval --model hf", "lm_eval", "C", batch},
           {"python -m ipykernel_launcher -f /run/jupyter/kernel-4f.json", "python", "C", notebook},
           {"/usr/bin/R --slave --args /tmp/kernel-9.json", "R", "C", notebook},
           {"/usr/lib/xorg/Xorg :0", "Xorg", "G", desktop},
           {"/opt/blender/blender scene.blend", "blender", "C+G", desktop},
           {"nvidia-cuda-mps-server", "nvidia-cuda-mps", "C", service},
           // Each line of the table for servers, as people start them.
           {"/usr/bin/python3 /usr/local/bin/torchserve --start --model-store m", "torchserve", "C", serving},
           {"java -cp model-server.jar org.pytorch.serve.ModelServer", "java", "C", serving},
           {"/ovms/bin/ovms --port 9000", "ovms", "C", serving},
           {"python -m huggingfaceserver --model_id m", "python", "C", serving},
           {"/opt/djl/bin/python /tmp/djl_python/djl_python.py", "python", "C", serving},
           {"/usr/bin/python3 /usr/local/bin/openllm start m", "openllm", "C", serving},
           {"lorax-launcher --model-id m", "lorax-launcher", "C", serving},
           {"/usr/bin/python3 /usr/local/bin/xinference-local -H 0.0.0.0", "xinference-loca", "C", serving},
           {"python -m aphrodite.endpoints.openai.api_server", "python", "C", serving},
           {"python /usr/bin/sglang serve --model m", "sglang", "C", serving},
           {"python -m mlc_llm serve HF://m", "python", "C", serving},
           {"python3 -m fastchat.serve.model_worker --model-path /train_7b", "python3", "C", serving},
           {"python -m lightllm.server.api_server", "python", "C", serving},
           {"/opt/tabby/bin/tabby serve --device cuda", "tabby", "C", serving},
           {"python -m cog.server.http", "python", "C", serving},
           {"python -c from litserve.server import x", "python", "C", serving},
           {"ray::Replica:llm:VLLM.handle", "ray::Replica:ll", "C", serving},
           {"python -m dynamo.vllm --model m", "python", "C", serving},
           {"local-ai run", "local-ai", "C", serving},
           {"python -u launch.py --medvram", "python", "C", serving},
           {"python webui.py --listen", "python", "C", serving},
           {"invokeai-web", "invokeai-web", "C", serving},
           {"/opt/venv/bin/python3 /opt/venv/bin/uvicorn main:app --workers 1", "uvicorn", "C", serving},
           {"python -m uvicorn main:app", "python", "C", serving},
           {"gunicorn: worker [llm]", "gunicorn: worke", "C", serving},
           {"/usr/bin/python3 /usr/bin/hypercorn app:app", "hypercorn", "C", serving},
           {"/usr/bin/python3 /usr/bin/fastapi run main.py", "fastapi", "C", serving},
           {"python -m flask run", "python", "C", serving},
           {"python /usr/bin/gradio demo.py", "gradio", "C", serving},
           {"python /usr/bin/streamlit run train_viewer.py", "streamlit", "C", serving},
           {"python /usr/bin/celery -A jobs worker", "celery", "C", serving},
           {"[celeryd: celery@host:ForkPoolWorker-1]", "python", "C", serving},
           {"python manage.py runserver 0.0.0.0:80", "python", "C", serving},
           {"python serve.py --ckpt /runs/train_7b/finetune", "python", "C", serving},
           {"python server.py", "python", "C", serving},
           {"python serve_sd.py --port 7860", "python", "C", serving},
           {"python -u /srv/model_server.py", "python", "C", serving},
           {"python app.py", "python", "C", serving},
           {"python my_api.py", "python", "C", serving},
           // A program's arguments do not make it one of these.
           {"python observer.py --sink uvicorn", "python", "C", unknown},
           {"python infer.py --model /runs/train_7b --data /srv/flask", "python", "C", unknown},
           {"python -m pkg.pretrain --data /srv/flask/server.py", "python", "C", training},
           {"python /usr/bin/trl sft --model m", "trl", "C", training},
           {"python run_fine_tuning.py", "python", "C", training},
           {"python job.py", "python", "C", unknown},
           {"", "", "", unknown}})
    EXPECT_EQ(program_of(c.command, c.name, c.kind).kind, c.expected) << c.command;
  EXPECT_EQ(program_of("vllm serve x", "vllm", "C").what, "vLLM server");
}

TEST(ProgramKind, OnlyServersAndTheUnknownMayHaveMornings) {
  EXPECT_TRUE(has_no_clients(ProgramKind::training));
  EXPECT_TRUE(has_no_clients(ProgramKind::batch));
  EXPECT_TRUE(has_no_clients(ProgramKind::notebook));
  EXPECT_FALSE(has_no_clients(ProgramKind::serving));
  EXPECT_FALSE(has_no_clients(ProgramKind::unknown));
  EXPECT_FALSE(has_no_clients(ProgramKind::desktop));
}

}  // namespace
}  // namespace vramtrack
